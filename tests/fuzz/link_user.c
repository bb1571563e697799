/* link_user.c - a link's user. */
#include "link_user.h"

#include <errno.h>

#include "must.h"
#include "peer/input.h"
#include "program.h"

enum {
	SETUP_MS = 1000,
	LINGER_MS = 600, /* longer than any link's */
	ROUNDS_MAX = 2000,
};

struct link_user user;

static uint64_t now_ns = 1000000000, opened_ns;
static bool free_inside;
static bool user_closed, late; /* legitimate ends: we closed it; set-up took too long */

/* --- turns ------------------------------------------------------------------------------------ */

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

void user_create(void)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	must(!weft_reactor_create(&user.reactor, &options, NULL));
}

void user_turns(unsigned n)
{
	while (n--)
		weft_reactor_turn(user.reactor, 0);
}

static void advance(uint64_t ms)
{
	now_ns += ms * 1000000;
	late |= !user.is_ready && now_ns - opened_ns >= SETUP_MS * UINT64_C(1000000);
}

/* Until nobody has anything to say. */
static void run_dry(void)
{
	unsigned rounds = 0;

	while (program.settle())
		must(rounds++ < ROUNDS_MAX);
}

/* --- what it is told -------------------------------------------------------------------------- */

static void on_ready(struct weft_link *link)
{
	must(link == user.link && !user.is_ready && !user.is_closed && !link->closing);
	user.is_ready = true;
	controller.ready(link);
}

static void on_done(struct weft_link *link, struct weft_link_slot *slot)
{
	struct order *o = slot->user;
	struct order_form form = { .kind = (uint8_t)(o - orders), .len = o->len, .shape = 9 };
	bool again = o->again;

	must(link == user.link && user.is_ready && !user.is_closed);
	order_check_done(o, slot, controller.is_strict(o));
	if (again && !link->closing)
		order_place(link, &form);
}

static void on_closed(struct weft_link *link)
{
	must(link == user.link && !user.is_closed);
	must(link->closing && link->rc < 0 && link->err.text[0]);
	user.is_closed = true;
	controller.closed(link, user_closed || late);
	orders_void();
	if (!free_inside)
		return;
	weft_link_free(link);
	user.link = NULL;
}

static const struct weft_link_ops ops = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

/* --- its life --------------------------------------------------------------------------------- */

int user_open(const struct weft_link_transport *transport, struct weft_link_options *options,
	      bool free_it_inside)
{
	int rc;

	options->setup_ms = SETUP_MS;
	user.is_ready = user.is_closed = user_closed = late = false;
	free_inside = free_it_inside;
	opened_ns = now_ns;
	rc = transport->open(&user.link, user.reactor, options, &ops, NULL, NULL);
	if (rc < 0) {
		user.link = NULL;
		user.is_closed = true;
	}
	return rc;
}

bool user_is_usable(void)
{
	return user.link && user.is_ready && !user.link->closing;
}

void user_answer_all(void)
{
	unsigned rounds = 0;

	for (unsigned i = 0; i < norders; i++)
		orders[i].again = false;
	run_dry();
	for (; orders_are_open(); run_dry()) {
		must(rounds++ < ROUNDS_MAX);
		for (unsigned i = 0; i < norders; i++)
			if (order_waits(&orders[i]) && orders[i].seen)
				controller.answer(&orders[i]);
	}
}

void user_end(void)
{
	op_close();
	for (unsigned i = 0; i < 16 && !user.is_closed; i++) {
		program.settle();
		advance(LINGER_MS / 4);
	}
	must(user.is_closed);
	program.settle();
	if (user.link)
		weft_link_free(user.link);
	user.link = NULL;
}

/* --- operations ------------------------------------------------------------------------------- */

void op_clock(void)
{
	advance(u16());
}

void op_submit(void)
{
	struct order_form form = { .kind = u8() };
	uint8_t flags = u8();

	form.again = flags & 1;
	form.len = input_length(flags);
	form.shape = u8();
	form.skip = flags & 2 ? u8() : 0;
	form.tail = flags & 4 ? u8() : 0;
	form.known = flags & 8 ? u8() : 0;
	if (user_is_usable())
		order_place(user.link, &form);
}

void op_close(void)
{
	user_closed = true;
	if (user.link && !user.is_closed)
		weft_link_close(user.link, -ESHUTDOWN, "the program says so");
}

struct order *pick_order(void)
{
	unsigned n = 0, which = u8();

	for (unsigned i = 0; i < norders; i++)
		n += order_waits(&orders[i]);
	which = n ? which % n : 0;
	for (unsigned i = 0; n && i < norders; i++)
		if (order_waits(&orders[i]) && !which--)
			return &orders[i];
	return NULL;
}
