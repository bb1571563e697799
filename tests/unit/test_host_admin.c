/* test_host_admin.c - a path's admin queue has room for all that the host itself asks for, and when it
 * has not, that comes later: it is not lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "host/internal.h"
#include "running.h"

enum { OURS = HOST_ADMIN_DEPTH + 3, TIMEOUT_MS = 1000 };

/* --- what is below and beside an admin queue -------------------------------------------------- */

static uint64_t now_ns = 1;
static unsigned pumped, broken;
static struct weft_link_slot *sent[HOST_ADMIN_DEPTH];
static unsigned nsent;
static uint64_t timer_ms; /* 0: not set */
static struct weft_task *deferred;

bool weft_reactor_is_here(const struct weft_reactor *r)
{
	return true;
}

bool weft_reactor_is_driven_elsewhere(const struct weft_reactor *r)
{
	return false;
}

uint64_t weft_reactor_now_ns(const struct weft_reactor *r)
{
	return now_ns;
}

void weft_timer_set(struct weft_reactor *r, struct weft_timer *timer, uint64_t delay_ms)
{
	timer_ms = delay_ms;
}

void weft_timer_stop(struct weft_reactor *r, struct weft_timer *timer)
{
	timer_ms = 0;
}

void weft_task_init(struct weft_task *task, void (*fn)(struct weft_task *task))
{
	task->fn = fn;
}

void weft_reactor_defer(struct weft_reactor *r, struct weft_task *task)
{
	deferred = task;
}

void host_user_admin_pump(struct weft_ctrl *ctrl)
{
	pumped++;
}

void host_setup_start(struct host_path *path)
{
}

void host_path_link_closed(struct host_path *path)
{
}

void host_path_broken(struct host_path *path, int rc, const char *why, ...)
{
	broken++;
}

static void submit(struct weft_link *link, struct weft_link_slot *slot)
{
	assert_true(nsent < HOST_ADMIN_DEPTH);
	sent[nsent++] = slot;
}

static void close_link(struct weft_link *link)
{
}

static void free_link(struct weft_link *link)
{
}

static const struct weft_link_transport transport = { .slot_size = sizeof(struct weft_link_slot),
						      .submit = submit,
						      .close = close_link,
						      .free = free_link };

/* --- a path ----------------------------------------------------------------------------------- */

static struct host_path *path;
static struct weft_link link_;
static struct host_admin ours[OURS];
static unsigned over[OURS];
static int rcs[OURS];

static void on_done(struct host_admin *a, int rc)
{
	over[a - ours]++;
	rcs[a - ours] = rc;
}

static int set_up(void **state)
{
	const struct weft_link_options options = { .depth = HOST_ADMIN_DEPTH };

	memset(&link_, 0, sizeof(link_));
	path = calloc(1, sizeof(*path));
	host_admin_init(path);
	assert_int_equal(weft_link_init(&link_, &transport, NULL, &options, &host_admin_link_ops,
					path),
			 0);
	path->assoc.link = &link_;
	path->state = HOST_PATH_LIVE;
	nsent = pumped = broken = 0;
	timer_ms = 0;
	memset(over, 0, sizeof(over));
	return 0;
}

static int tear_down(void **state)
{
	weft_link_destroy(&link_);
	free(path);
	return 0;
}

static void start(unsigned i, uint32_t timeout_ms)
{
	host_admin_prepare(&ours[i], "a command of ours", on_done);
	host_admin_start(path, &ours[i], timeout_ms);
}

static void start_all(void)
{
	for (unsigned i = 0; i < OURS; i++)
		start(i, 0);
}

/* The controller answers the one that it has had for longest. */
static void complete(void)
{
	struct weft_link_slot *slot = sent[0];

	memmove(sent, sent + 1, --nsent * sizeof(*sent));
	slot->cqe = (struct nvme_cqe){ 0 };
	slot->moved = slot->data_len;
	weft_link_complete(&link_, slot);
}

static void answer(void)
{
	complete();
	assert_non_null(deferred);
	deferred->fn(deferred);
}

/* --- cases ------------------------------------------------------------------------------------ */

static void no_slot_is_later(void **state)
{
	start_all();
	assert_int_equal(nsent, HOST_ADMIN_DEPTH);
	for (unsigned i = 0; i < OURS; i++)
		assert_true(!over[i] && ours[i].inflight);
	for (unsigned i = 0; i < OURS; i++) {
		assert_false(host_admin_has_room(path) && i < OURS - HOST_ADMIN_DEPTH);
		answer();
		assert_true(over[i] == 1 && !rcs[i]); /* in order */
		assert_int_equal(pumped, i + 1);
	}
	assert_true(host_admin_has_room(path) && !nsent);
}

/* The program's commands do not overtake ours. */
static void ours_come_first(void **state)
{
	start_all();
	for (unsigned i = 0; i < OURS - HOST_ADMIN_DEPTH; i++) {
		complete();
		assert_false(host_admin_has_room(path));
		deferred->fn(deferred);
		assert_int_equal(nsent, HOST_ADMIN_DEPTH);
	}
	assert_false(host_admin_has_room(path));
	answer();
	assert_true(host_admin_has_room(path));
	while (nsent)
		answer();
}

static void lost_with_the_link(void **state)
{
	start_all();
	link_.closing = true;
	for (unsigned i = 0; i < OURS; i++)
		assert_false(over[i]);
	path->assoc.link = NULL;
	host_admin_lost(path);
	for (unsigned i = 0; i < OURS; i++)
		assert_true(over[i] == 1 && rcs[i] == -ECONNRESET);
}

/* Time counts from the start, also for one that waits. */
static void late_while_it_waits(void **state)
{
	for (unsigned i = 0; i < HOST_ADMIN_DEPTH; i++)
		start(i, 0);
	assert_int_equal(timer_ms, 0);
	start(HOST_ADMIN_DEPTH, TIMEOUT_MS);
	assert_int_equal(timer_ms, TIMEOUT_MS + 1);
	now_ns += TIMEOUT_MS * UINT64_C(1000000);
	path->admin.timer.fn(&path->admin.timer);
	assert_int_equal(broken, 1);
	path->assoc.link = NULL;
	host_admin_lost(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_slot_is_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ours_come_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_with_the_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(late_while_it_waits, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
