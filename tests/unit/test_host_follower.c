/* test_host_follower.c - paths that a discovery service tells of: a relay (peer/relay.h) leads to
 * that of Weft's own target, which lists itself. So paths are the target's; the relay is only the
 * guide. */
#include "host_case.h"
#include "peer/relay.h"
#include "running.h"

#include <poll.h>

#define HASTY "&reconnect_delay=1ms&reconnect_delay_max=5ms"

static struct relay *relay;
static char block[4096];

static int start(void **state)
{
	relay = relay_start(target_address());
	return 0;
}

static int stop(void **state)
{
	relay_stop(relay);
	return 0;
}

/* One URI, through the relay; @more stands in front of it. */
static int try_connect(const char *more, const char *nqn, struct weft_ctrl **ctrl,
		       struct weft_err *err)
{
	char uri[512];

	snprintf(uri, sizeof(uri), "%s%s/%s?paths=discover" HASTY, more, relay_address(relay), nqn);
	return weft_connect(uri, NULL, ctrl, err);
}

static struct weft_ctrl *connect_guided(const char *more)
{
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;

	if (try_connect(more, TARGET_NQN, &ctrl, &err) < 0)
		fail_msg("%s", err.text);
	return ctrl;
}

/* The only path there is, to the target itself. */
static void check_path(struct weft_ctrl *ctrl, const char *from)
{
	struct weft_path_info path;

	assert_int_equal(weft_ctrl_paths(ctrl, &path, 1), 1);
	assert_string_equal(path.address, target_address());
	assert_string_equal(path.from, from);
	assert_int_equal(path.state, WEFT_LIVE);
}

/* Until an event of its guide tells of that state. */
static void await_guide(struct weft_ctrl *ctrl, enum weft_state state)
{
	struct pollfd fd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };
	struct weft_event event;

	while (poll(&fd, 1, 20000) > 0)
		while (weft_ctrl_next_event(ctrl, &event))
			if (event.kind == WEFT_EVENT_DISCOVERY && event.state == state)
				return;
	fail_msg("it was never told that the guide is %s", weft_state_text(state));
}

/* --- coming about ----------------------------------------------------------------------------- */

static void what_is_listed_is_used(void **state)
{
	struct weft_ctrl *ctrl = connect_guided("");
	struct host h = { ctrl, open_ns(ctrl, NS_512), open_queue(ctrl) };

	check_path(ctrl, relay_address(relay));
	assert_int_equal(weft_read(h.queue, h.ns, block, sizeof(block), 0, NULL), 0);
	host_close(&h);
}

static void what_was_given_counts_once(void **state)
{
	struct weft_ctrl *ctrl;
	char given[256];

	snprintf(given, sizeof(given), "%s/%s?paths=given,", target_address(), TARGET_NQN);
	ctrl = connect_guided(given);
	check_path(ctrl, "");
	weft_disconnect(ctrl);
}

static void what_was_told_twice_counts_once(void **state)
{
	struct weft_ctrl *ctrl;
	char another[256];

	snprintf(another, sizeof(another), "%s/%s,", relay_address(relay), TARGET_NQN);
	ctrl = connect_guided(another);
	check_path(ctrl, relay_address(relay));
	weft_disconnect(ctrl);
}

static const struct {
	const char *what, *nqn;
	enum relay_mode mode;
	int rc;
	const char *why;
} failures[] = {
	{ "nothing is listed", "nqn.2026-11.io.weft:other", RELAY_PASS, -ENOENT,
	  "the discovery log does not list nqn.2026-11.io.weft:other" },
	{ "nobody lists it", TARGET_NQN, RELAY_REFUSE, 0, "" },
	{ "no subsystem is named", "", RELAY_PASS, -EINVAL, "paths=discover: of which subsystem?" },
};

static void no_path(void **state)
{
	for_each_named(i, failures, what) {
		struct weft_ctrl *ctrl = NULL;
		struct weft_err err = { "" };
		int rc;

		relay_mode(relay, failures[i].mode);
		rc = try_connect("", failures[i].nqn, &ctrl, &err);
		if (rc >= 0 || (failures[i].rc && rc != failures[i].rc) ||
		    !strstr(err.text, failures[i].why))
			fail_msg("%s: %d, %s", failures[i].what, rc, err.text);
	}
}

/* --- later ------------------------------------------------------------------------------------ */

/* Without its guide a path is what it was; with it again, nothing is doubled. */
static void the_guide_is_lost(void **state)
{
	struct weft_ctrl *ctrl = connect_guided("");
	struct host h = { ctrl, open_ns(ctrl, NS_512), open_queue(ctrl) };

	relay_mode(relay, RELAY_REFUSE);
	relay_cut(relay);
	await_guide(ctrl, WEFT_RECONNECTING);
	check_path(ctrl, relay_address(relay));
	assert_int_equal(weft_read(h.queue, h.ns, block, sizeof(block), 0, NULL), 0);
	relay_mode(relay, RELAY_PASS);
	await_guide(ctrl, WEFT_LIVE);
	check_path(ctrl, relay_address(relay));
	host_close(&h);
}

/* However far the guide is when it ends. */
static void the_end_comes_at_any_time(void **state)
{
	static const enum relay_mode modes[] = { RELAY_PASS, RELAY_REFUSE, RELAY_HOLD };

	for_each_row(i, modes) {
		struct weft_ctrl *ctrl;

		relay_mode(relay, RELAY_PASS);
		ctrl = connect_guided("");
		relay_mode(relay, modes[i]);
		relay_cut(relay);
		weft_disconnect(ctrl);
	}
}

static void a_program_does_not_remove_it(void **state)
{
	struct weft_ctrl *ctrl = connect_guided("");
	struct weft_path_info path;
	struct weft_err err = { "" };

	weft_ctrl_paths(ctrl, &path, 1);
	assert_int_equal(weft_path_remove(ctrl, path.path, &err), -EBUSY);
	assert_non_null(strstr(err.text, "comes and goes with the discovery log"));
	weft_disconnect(ctrl);
}

/* One that was given beside it is a path like any. */
static void a_program_adds_its_own(void **state)
{
	struct weft_ctrl *ctrl = connect_guided("");
	struct weft_path_info paths[2];
	struct weft_err err = { "" };
	char uri[256];
	int added;

	snprintf(uri, sizeof(uri), "%s/%s", relay_address(relay), TARGET_NQN);
	added = weft_path_add(ctrl, uri, &err);
	if (added < 0)
		fail_msg("%s", err.text);
	assert_int_equal(weft_ctrl_paths(ctrl, paths, 2), 2);
	assert_string_equal(paths[1].from, "");
	assert_int_equal(weft_path_remove(ctrl, (unsigned)added, &err), 0);
	strcat(uri, "?paths=discover");
	assert_int_equal(weft_path_add(ctrl, uri, &err), -EINVAL);
	weft_disconnect(ctrl);
}

static int target_with_namespace(void **state)
{
	target_start();
	target_ns_add(NS_512, "mem:16M", 512, NULL);
	return 0;
}

static int target_end(void **state)
{
	target_stop();
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_listed_is_used),
		CASE(what_was_given_counts_once),
		CASE(what_was_told_twice_counts_once),
		CASE(no_path),
		CASE(the_guide_is_lost),
		CASE(the_end_comes_at_any_time),
		CASE(a_program_does_not_remove_it),
		CASE(a_program_adds_its_own),
	};

	return cmocka_run_group_tests(tests, target_with_namespace, target_end);
}
