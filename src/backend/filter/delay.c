/* delay.c - a filter: storage that is slow. An io waits before it goes on.
 *
 *   submit ─▶ a timer in the io itself ─▶ the backend below ─▶ done
 *                        └─ bulk work there waits for its turn ─┘
 *
 *   delay=[KIND:]TIME[+[KIND:]TIME…]         delay=5ms    delay=read:100ms+flush:2s
 *
 * Every io waits its own time, however many there are: it adds latency and does not limit
 * throughput. It waits on the reactor that it came to, in its own memory, and by that reactor's
 * clock.
 *
 * Invariant: an io is in the timers of its reactor, waits for its turn, or is below. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "backend/filter/filter.h"

#define MS_MAX (60 * 60 * 1000u)

struct delay {
	struct weft_filter filter;
	uint64_t ms[WEFT_FILTER_KINDS + 1];
};

static struct delay *delay_of(struct weft_backend *be)
{
	return container_of(be, struct delay, filter.be);
}

/* --- io --------------------------------------------------------------------------------------- */

static void delay_pass_on(struct weft_io *io)
{
	int rc;

	assert(io->be->next);
	rc = weft_backend_submit(io->be->next, io);
	if (rc < 0)
		io->done(io, rc);
}

static void delay_pass_on_at_turn(struct weft_task *task)
{
	delay_pass_on(container_of(task, struct weft_io, bulk_task));
}

/* It had a turn when it was submitted, and could not use it. */
static void delay_over(struct weft_timer *timer)
{
	struct weft_io *io = container_of(timer, struct weft_io, timer);

	if (!io->be->clear_max || !weft_io_clears(io)) {
		delay_pass_on(io);
		return;
	}
	weft_task_init(&io->bulk_task, delay_pass_on_at_turn);
	weft_reactor_bulk_retry(weft_reactor_self(), &io->bulk_task);
}

static int delay_submit(struct weft_backend *be, struct weft_io *io)
{
	uint64_t ms = io->kind < WEFT_FILTER_KINDS ? delay_of(be)->ms[io->kind] : 0;

	if (!ms)
		return weft_backend_submit(be->next, io);
	io->timer = (struct weft_timer){ .fn = delay_over };
	weft_timer_set(weft_reactor_self(), &io->timer, ms);
	return 0;
}

/* --- the SPEC --------------------------------------------------------------------------------- */

/* A unit is required: some would take a bare number for seconds. */
static int parse_time(unsigned kind, const char *text, uint64_t *ms)
{
	static const struct {
		const char *name;
		unsigned ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 } };
	unsigned long long value;
	char *unit;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	value = strtoull(text, &unit, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		if (value > MS_MAX / units[i].ms)
			return -ERANGE;
		*ms = value * units[i].ms;
		return 0;
	}
	return -EINVAL;
}

int weft_delay_set(struct weft_spec *spec, const char *value)
{
	uint64_t ms[WEFT_FILTER_KINDS + 1];
	int rc = weft_filter_values(value, NULL, parse_time, ms);

	if (!rc)
		strcpy(spec->delay, value);
	return rc;
}

int weft_delay_push(struct weft_backend **be, const struct weft_spec *spec)
{
	struct delay *delay;

	if (!spec->delay[0])
		return 0;
	delay = calloc(1, sizeof(*delay));
	if (!delay)
		return -ENOMEM;
	weft_filter_values(spec->delay, NULL, parse_time, delay->ms);
	weft_filter_push(&delay->filter, be, delay_submit);
	return 0;
}
