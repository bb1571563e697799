/* scheduler.c - time, chance, and whose turn it is. */
#include "scheduler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "network.h"
#include "reactor/internal.h"

enum { REACTORS_MAX = 64, QUIET_STEPS = 3 };

static struct {
	struct weft_reactor *r;
	const struct sim_node *node;
	void (*drive)(void *arg); /* NULL: a turn when there is something to do */
	void *arg;
	bool ready; /* one of its sockets is */
} reactors[REACTORS_MAX];
static unsigned nreactors;
static int watch = -1; /* epoll, of the reactors' descriptors */

static const char *story;
static uint64_t seed, state, now_ns;
static struct weft_heap events;
static bool stirred; /* something happened in this step */

bool sim_verbose;
const struct sim_node *sim_current_node;

/* --- chance ----------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t sim_random(uint64_t below)
{
	return below ? next_random() % below : 0;
}

bool sim_chance(unsigned percent)
{
	return sim_random(100) < percent;
}

/* --- telling ---------------------------------------------------------------------------------- */

void sim_tell(const char *fmt, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	fprintf(stderr, "%12.6f  ", (double)now_ns / 1e9);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void sim_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "sim %s %llu: at %.6f s: %s:%d: not true: %s\n", story,
		(unsigned long long)seed, (double)now_ns / 1e9, file, line, what);
	abort();
}

/* --- time ------------------------------------------------------------------------------------- */

void sim_begin(const char *with_story, uint64_t with_seed)
{
	must(!nreactors && !events.top);
	story = with_story;
	seed = state = with_seed;
	now_ns = 1000 * MS;
	sim_current_node = NULL;
}

uint64_t sim_now(void)
{
	return now_ns;
}

void sim_at(struct sim_event *event, uint64_t delay_ns)
{
	sim_cancel(event);
	weft_heap_push(&events, &event->node, now_ns + delay_ns);
}

void sim_cancel(struct sim_event *event)
{
	if (weft_heap_has(&event->node))
		weft_heap_remove(&events, &event->node);
}

static void run_events(void)
{
	struct sim_event *event;

	while (events.top && events.top->key <= now_ns) {
		event = container_of(events.top, struct sim_event, node);
		weft_heap_remove(&events, &event->node);
		event->fn(event);
		stirred = true;
	}
}

static uint64_t next_due(void)
{
	uint64_t due = network_due();

	if (events.top && events.top->key < due)
		due = events.top->key;
	for (unsigned i = 0; i < nreactors; i++) {
		const struct weft_heap_node *top = reactors[i].r->timers.top;

		if (top && !reactors[i].node->still && top->key < due)
			due = top->key;
	}
	return due;
}

/* --- reactors --------------------------------------------------------------------------------- */

/* @nreactors: it is not listed. */
static unsigned find_reactor(const struct weft_reactor *r)
{
	unsigned i = 0;

	while (i < nreactors && reactors[i].r != r)
		i++;
	return i;
}

void sim_add_reactor(struct weft_reactor *r, const struct sim_node *node, void (*drive)(void *arg),
		     void *arg)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = r };

	must(nreactors < REACTORS_MAX && node);
	if (watch < 0)
		watch = epoll_create1(EPOLL_CLOEXEC);
	must(!epoll_ctl(watch, EPOLL_CTL_ADD, weft_reactor_fd(r), &event));
	reactors[nreactors].r = r;
	reactors[nreactors].node = node;
	reactors[nreactors].drive = drive;
	reactors[nreactors].ready = true;
	reactors[nreactors++].arg = arg;
}

void sim_remove_reactor(struct weft_reactor *r)
{
	unsigned i = find_reactor(r);

	must(i < nreactors);
	must(!epoll_ctl(watch, EPOLL_CTL_DEL, weft_reactor_fd(r), NULL));
	nreactors--;
	for (; i < nreactors; i++)
		reactors[i] = reactors[i + 1];
}

/* Which sockets have something; turns of all who have nothing would cost most of all time. */
static void poll_epoll(void)
{
	struct epoll_event found[REACTORS_MAX];
	int n = watch < 0 ? 0 : epoll_wait(watch, found, REACTORS_MAX, 0);

	for (int i = 0; i < n; i++)
		reactors[find_reactor(found[i].data.ptr)].ready = true;
}

/* A turn may end other reactors, and make new ones. */
static void turn_reactor(unsigned i)
{
	struct weft_reactor *r = reactors[i].r;
	bool busy = weft_reactor_busy(r) || (r->timers.top && r->timers.top->key <= now_ns);

	if (reactors[i].node->still || r->turning)
		return;
	if (!busy && !reactors[i].ready && !reactors[i].drive)
		return;
	stirred |= busy;
	sim_current_node = reactors[i].node;
	reactors[i].ready = false;
	if (reactors[i].drive)
		reactors[i].drive(reactors[i].arg);
	else
		weft_reactor_turn(r, 0);
	stirred |= find_reactor(r) < nreactors && weft_reactor_busy(r);
}

static void turn_all(void)
{
	unsigned first = (unsigned)sim_random(nreactors);

	poll_epoll();
	for (unsigned i = 0; i < nreactors; i++)
		turn_reactor((first + i) % nreactors);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Time does not go past @end. */
static void run_one_step(uint64_t end)
{
	static unsigned quiet;
	const struct sim_node *node = sim_current_node;
	uint64_t due;

	stirred = false;
	turn_all();
	sim_current_node = NULL;
	run_events();
	stirred |= network_move();
	sim_current_node = node;
	quiet = stirred ? 0 : quiet + 1;
	if (quiet < QUIET_STEPS) {
		now_ns += stirred ? 1 + sim_random(5 * US) : 1;
		return;
	}
	quiet = 0;
	due = next_due();
	must(due != UINT64_MAX || end != UINT64_MAX); /* everybody waits for somebody else */
	due = due < end ? due : end;
	if (due > now_ns)
		now_ns = due;
}

void sim_step(void)
{
	run_one_step(UINT64_MAX);
}

void sim_run(uint64_t ns)
{
	uint64_t end = now_ns + ns;

	while (now_ns < end)
		run_one_step(end);
}

bool sim_run_until(bool (*over)(void *arg), void *arg, uint64_t ns)
{
	uint64_t end = now_ns + ns;

	while (!over(arg) && now_ns < end)
		run_one_step(end);
	return over(arg);
}
