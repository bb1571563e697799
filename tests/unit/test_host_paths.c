/* test_host_paths.c - a subsystem seen through several paths: relays (peer/relay.h) to Weft's own
 * target, which are cut, closed, silenced, added and removed while I/O flows. */
#include "io_job.h"
#include "peer/relay.h"
#include "running.h"

enum { PATHS = 2, CUTS = 20 };

static struct relay *relays[PATHS];
static char block[4096];

static void start_relays(void)
{
	for (int i = 0; i < PATHS; i++)
		relays[i] = relay_start(target_address());
}

static void stop_relays(void)
{
	for (int i = 0; i < PATHS; i++)
		relay_stop(relays[i]);
}

/* "URI,URI", through every relay. */
static const char *uris(const char *words)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s/%s,%s/%s%s", relay_address(relays[0]), TARGET_NQN,
		 relay_address(relays[1]), TARGET_NQN, words);
	return text;
}

static struct weft_ctrl *connect_to(const char *uri)
{
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;

	if (weft_connect(uri, NULL, &ctrl, &err) < 0)
		fail_msg("%s", err.text);
	return ctrl;
}

static struct weft_ctrl *connect_both(const char *words)
{
	return connect_to(uris(words));
}

static struct host open_through(struct weft_ctrl *ctrl)
{
	return (struct host){ ctrl, open_ns(ctrl, NS_512), open_queue(ctrl) };
}

static struct host open_both(const char *words)
{
	return open_through(connect_both(words));
}

/* Reads until the relay has passed some of it on. */
static void read_through(struct host *h, struct relay *relay)
{
	uint64_t before = relay_bytes(relay);

	while (relay_bytes(relay) < before + 20 * sizeof(block))
		assert_int_equal(weft_read(h->queue, h->ns, block, sizeof(block), 0, NULL), 0);
}

/* --- coming about ----------------------------------------------------------------------------- */

static void both_are_used(void **state)
{
	struct host h;

	start_relays();
	h = open_both("?reconnect_delay=1ms");
	read_through(&h, relays[0]);
	read_through(&h, relays[1]);
	host_close(&h);
	stop_relays();
}

static void one_is_enough(void **state)
{
	struct host h;

	for (int i = 0; i < PATHS; i++) {
		start_relays();
		relay_mode(relays[i], RELAY_REFUSE);
		h = open_both("?reconnect_delay=1ms&reconnect_delay_max=5ms");
		read_through(&h, relays[!i]);
		relay_mode(relays[i], RELAY_PASS);
		read_through(&h, relays[i]); /* it has come, and so has its range */
		host_close(&h);
		stop_relays();
	}
}

static void none_is_not(void **state)
{
	struct weft_ctrl *ctrl = NULL;
	struct weft_err err = { "" };

	start_relays();
	for (int i = 0; i < PATHS; i++)
		relay_mode(relays[i], RELAY_REFUSE);
	assert_true(weft_connect(uris(""), NULL, &ctrl, &err) < 0);
	for (int i = 0; i < PATHS; i++)
		if (!strstr(err.text, relay_address(relays[i])))
			fail_msg("it does not tell of path %d: %s", i, err.text);
	stop_relays();
}

static const struct {
	const char *what, *second; /* behind the target's address */
	const char *why;
} mistakes[] = {
	{ "another subsystem", "/nqn.2026-11.io.weft:other", "paths lead to one subsystem" },
	{ "the discovery service", "", "paths lead to one subsystem" },
	{ "two hosts", "/" TARGET_NQN "?hostnqn=nqn.2026-11.io.weft:me",
	  "one host uses all paths" },
	{ "two namespaces", "/" TARGET_NQN "?nsid=2", "name two namespaces, 1 and 2" },
	{ "port 0", "/" TARGET_NQN ",nvme+tcp://127.0.0.1:0", "does not listen on port 0" },
};

static void mistaken(void **state)
{
	for_each_named(i, mistakes, what) {
		struct weft_ctrl *ctrl = NULL;
		struct weft_err err = { "" };
		char text[1024];
		int rc;

		snprintf(text, sizeof(text), "%s/%s?nsid=1&hostnqn=nqn.2026-11.io.weft:you,%s%s",
			 target_address(), TARGET_NQN, target_address(), mistakes[i].second);
		rc = weft_connect(text, NULL, &ctrl, &err);
		if (rc != -EINVAL || !strstr(err.text, mistakes[i].why))
			fail_msg("%s: %d, %s", mistakes[i].what, rc, err.text);
	}
}

/* --- failing over ----------------------------------------------------------------------------- */

static struct io_job jobs[2];

/* Path by path: the I/O goes on through the other, and nothing is lost, doubled or mixed up. */
static void cut_under_load(void **state)
{
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;

	start_relays();
	ctrl = connect_both("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	ns = open_ns(ctrl, NS_512);
	atomic_store(&io_job_more, true);
	for (unsigned i = 0; i < COUNT(jobs); i++) {
		io_job_init(&jobs[i], ctrl, ns, i);
		jobs[i].by_fd = i;
		need(!pthread_create(&jobs[i].thread, NULL, io_job_run, &jobs[i]));
	}
	for (unsigned i = 0; i < CUTS; i++) {
		struct relay *relay = relays[i % PATHS];
		uint64_t before;

		relay_cut(relay);
		for (before = relay_bytes(relay); relay_bytes(relay) < before + (1 << 18);)
			usleep(1000);
	}
	atomic_store(&io_job_more, false);
	for (unsigned i = 0; i < COUNT(jobs); i++) {
		pthread_join(jobs[i].thread, NULL);
		io_job_end(&jobs[i]);
	}
	weft_ns_close(ns);
	weft_disconnect(ctrl);
	stop_relays();
}

/* While one path is down for good, no command waits for it. */
static void one_stays_down(void **state)
{
	struct host h;

	start_relays();
	h = open_both("?loss_timeout=50ms&reconnect_delay=1ms&reconnect_delay_max=5ms");
	read_through(&h, relays[0]);
	read_through(&h, relays[1]);
	relay_mode(relays[0], RELAY_REFUSE);
	relay_cut(relays[0]);
	read_through(&h, relays[1]);
	assert_int_equal(weft_ctrl_state(h.ctrl, NULL), WEFT_LIVE);
	host_close(&h);
	stop_relays();
}

static void both_go_and_come(void **state)
{
	struct weft_event event;
	struct host h;

	start_relays();
	h = open_both("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	for (int i = 0; i < PATHS; i++) {
		relay_mode(relays[i], RELAY_REFUSE);
		relay_cut(relays[i]);
	}
	while (weft_ctrl_state(h.ctrl, NULL) == WEFT_LIVE)
		usleep(1000);
	relay_mode(relays[1], RELAY_PASS);
	read_through(&h, relays[1]); /* what waited goes out there */
	relay_mode(relays[0], RELAY_PASS);
	read_through(&h, relays[0]);
	for (event.state = WEFT_DEAD; event.state != WEFT_LIVE;)
		assert_true(weft_ctrl_next_event(h.ctrl, &event));
	host_close(&h);
	stop_relays();
}

/* The one that is to reset the other's controller is being lost, too. */
static void both_are_cut_at_once(void **state)
{
	struct host h;

	start_relays();
	h = open_both("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	for (int times = 0; times < 50; times++) {
		for (int i = 0; i < PATHS; i++)
			read_through(&h, relays[i]);
		for (int i = 0; i < PATHS; i++)
			relay_cut_soon(relays[i]);
	}
	host_close(&h);
	stop_relays();
}

/* Nothing but a probe notices: what was in flight there is read through the other. */
static void one_falls_silent(void **state)
{
	struct host h;

	start_relays();
	h = open_both("?probe=20ms&kato=60m&io_timeout=60m&reconnect_delay=1ms"
		      "&reconnect_delay_max=5ms");
	read_through(&h, relays[0]);
	read_through(&h, relays[1]);
	for (int i = 0; i < PATHS; i++) {
		relay_mode(relays[i], RELAY_HOLD);
		read_through(&h, relays[!i]);
		relay_mode(relays[i], RELAY_PASS);
		relay_cut(relays[i]);
		read_through(&h, relays[i]);
	}
	host_close(&h);
	stop_relays();
}

static void no_path_for_long(void **state)
{
	struct weft_err err = { "" };
	struct host h;
	int rc;

	start_relays();
	h = open_both("?fast_io_fail=100ms&reconnect_delay=1ms&reconnect_delay_max=5ms");
	for (int i = 0; i < PATHS; i++) {
		relay_mode(relays[i], RELAY_REFUSE);
		relay_cut(relays[i]);
	}
	do {
		rc = weft_read(h.queue, h.ns, block, sizeof(block), 0, &err);
	} while (rc == 0);
	assert_int_equal(rc, -EIO);
	assert_non_null(strstr(err.text, "no path could be used for 100 ms (fast_io_fail)"));
	for (int i = 0; i < PATHS; i++)
		assert_non_null(strstr(err.text, strstr(relay_address(relays[i]), "//") + 2));
	assert_int_not_equal(weft_ctrl_state(h.ctrl, NULL), WEFT_DEAD);
	relay_mode(relays[1], RELAY_PASS);
	while (weft_read(h.queue, h.ns, block, sizeof(block), 0, NULL) < 0)
		usleep(1000);
	read_through(&h, relays[1]);
	host_close(&h);
	stop_relays();
}

/* --- what can be seen ------------------------------------------------------------------------- */

static enum weft_state state_of(struct weft_ctrl *ctrl, unsigned i)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];

	assert_int_equal(weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX), PATHS);
	assert_int_equal(paths[i].path, i);
	assert_string_equal(paths[i].address, relay_address(relays[i]));
	return paths[i].state;
}

static enum weft_access access_through(struct weft_ns *ns, unsigned i)
{
	struct weft_ns_path paths[WEFT_PATHS_MAX];

	assert_int_equal(weft_ns_paths(ns, paths, WEFT_PATHS_MAX), PATHS);
	return paths[i].access;
}

static void seen(void **state)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	struct weft_stalls stalls;
	struct host h;

	start_relays();
	h = open_both("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	read_through(&h, relays[0]);
	read_through(&h, relays[1]);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(state_of(h.ctrl, i), WEFT_LIVE);
		assert_int_equal(access_through(h.ns, i), WEFT_ACCESS_OPTIMIZED);
	}
	relay_mode(relays[0], RELAY_REFUSE);
	relay_cut(relays[0]);
	while (state_of(h.ctrl, 0) == WEFT_LIVE)
		usleep(1000);
	assert_int_equal(access_through(h.ns, 0), WEFT_ACCESS_UNKNOWN);
	assert_int_equal(access_through(h.ns, 1), WEFT_ACCESS_OPTIMIZED);
	relay_mode(relays[0], RELAY_PASS);
	while (state_of(h.ctrl, 0) != WEFT_LIVE)
		usleep(1000);
	assert_int_equal(weft_ctrl_paths(h.ctrl, paths, 1), PATHS);
	assert_int_equal(paths[0].reconnects, 1);
	assert_true(paths[0].why.text[0]);
	weft_queue_stalls(h.queue, &stalls);
	assert_true(stalls.longest_ns <= stalls.total_ns);
	host_close(&h);
	stop_relays();
}

/* The only path that is left takes long: it is not given up for that. */
static void the_last_is_not_probed(void **state)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	struct iovec iov = { block, sizeof(block) };
	struct weft_cmd cmd = { .op = WEFT_READ, .length = sizeof(block), .iov = &iov, .iovcnt = 1 };
	struct host h;

	start_relays();
	h = open_both("?probe=10ms&kato=60m&io_timeout=60m&reconnect_delay=1ms"
		      "&reconnect_delay_max=5ms");
	read_through(&h, relays[0]);
	read_through(&h, relays[1]);
	relay_mode(relays[1], RELAY_REFUSE);
	relay_cut(relays[1]);
	while (state_of(h.ctrl, 1) == WEFT_LIVE)
		usleep(1000);
	read_through(&h, relays[0]);
	relay_mode(relays[0], RELAY_HOLD);
	cmd.ns = h.ns;
	assert_int_equal(weft_submit(h.queue, &cmd), 0);
	for (unsigned i = 0; i < 50; i++) /* many times what a probe waits */
		weft_queue_poll(h.queue, 10);
	relay_mode(relays[0], RELAY_PASS);
	while (weft_queue_pending(h.queue))
		weft_queue_poll(h.queue, -1);
	assert_int_equal(cmd.rc, 0);
	assert_int_equal(weft_ctrl_paths(h.ctrl, paths, PATHS), PATHS);
	assert_int_equal(paths[0].reconnects, 0);
	host_close(&h);
	stop_relays();
}

/* Every cut is a stall of a queue that has something in flight there, and counted once. */
static void stalls_are_counted(void **state)
{
	struct weft_stalls before, after;
	uint64_t sum = 0;
	struct host h;

	start_relays();
	h = open_both("?probe=10ms&kato=60m&io_timeout=60m&reconnect_delay=1ms"
		      "&reconnect_delay_max=5ms");
	do { /* a busy machine may lose the path before a command is caught there */
		relay_mode(relays[0], RELAY_PASS);
		relay_cut(relays[0]);
		read_through(&h, relays[0]);
		read_through(&h, relays[1]);
		weft_queue_stalls(h.queue, &before);
		relay_mode(relays[0], RELAY_HOLD);
		for (int i = 0; i < 10; i++)
			assert_int_equal(weft_read(h.queue, h.ns, block, sizeof(block), 0, NULL),
					 0);
		weft_queue_stalls(h.queue, &after);
	} while (after.switches == before.switches);
	assert_int_equal(after.switches, before.switches + 1);
	assert_int_equal(after.stalls, before.stalls + 1);
	assert_true(after.longest_ns && after.longest_ns <= after.total_ns);
	for (unsigned i = 0; i < WEFT_STALL_LENGTHS; i++)
		sum += after.by_length[i];
	assert_int_equal(sum, after.stalls);
	relay_mode(relays[0], RELAY_PASS);
	host_close(&h);
	stop_relays();
}

/* --- coming and going ------------------------------------------------------------------------- */

static int add(struct weft_ctrl *ctrl, struct relay *relay, const char *rest, struct weft_err *err)
{
	char uri[256];

	snprintf(uri, sizeof(uri), "%s%s", relay_address(relay), rest);
	return weft_path_add(ctrl, uri, err);
}

static void wait_for_no_connection(struct weft_queue *queue, struct relay *relay)
{
	while (relay_connections(relay)) {
		weft_queue_poll(queue, 0);
		usleep(1000);
	}
}

static void added_and_removed(void **state)
{
	struct weft_err err = { "" };
	struct host h;
	int first = 0, path;

	start_relays();
	h = host_open("", NS_512); /* straight to the target */
	for (unsigned i = 0; i < 6; i++) {
		struct relay *relay = relays[i % PATHS];

		path = add(h.ctrl, relay, "/" TARGET_NQN, &err);
		assert_true(path > first);
		read_through(&h, relay);
		assert_int_equal(weft_path_remove(h.ctrl, (unsigned)first, &err), 0);
		assert_int_equal(weft_path_remove(h.ctrl, (unsigned)first, &err), -ENOENT);
		if (i)
			wait_for_no_connection(h.queue, relays[!(i % PATHS)]);
		read_through(&h, relay);
		first = path;
	}
	assert_int_equal(weft_path_remove(h.ctrl, (unsigned)first, &err), -EBUSY);
	host_close(&h);
	stop_relays();
}

/* Its events end with its connection: nobody waits for it to come back. */
static void removed_does_not_reconnect(void **state)
{
	struct weft_err err = { "" };
	struct weft_event event;
	unsigned resets = 0;
	struct host h;
	int path;

	start_relays();
	h = host_open("", NS_512);
	assert_true(add(h.ctrl, relays[1], "/" TARGET_NQN, &err) > 0);
	path = add(h.ctrl, relays[0], "/" TARGET_NQN, &err);
	assert_true(path > 0);
	read_through(&h, relays[0]);
	assert_int_equal(weft_path_remove(h.ctrl, (unsigned)path, &err), 0);
	wait_for_no_connection(h.queue, relays[0]);
	assert_true(add(h.ctrl, relays[0], "/" TARGET_NQN, &err) > path);
	while (weft_ctrl_next_event(h.ctrl, &event)) {
		assert_int_not_equal(event.state, WEFT_RECONNECTING);
		resets += event.state == WEFT_RESETTING;
	}
	assert_int_equal(resets, 1);
	host_close(&h);
	stop_relays();
}

/* A path that was alone had nobody to go on with when it was last used. */
static void silent_after_another_came(void **state)
{
	struct weft_err err = { "" };
	char uri[256];
	struct host h;

	start_relays();
	snprintf(uri, sizeof(uri), "%s/%s?probe=20ms&kato=60m&io_timeout=60m",
		 relay_address(relays[0]), TARGET_NQN);
	h = open_through(connect_to(uri));
	read_through(&h, relays[0]);
	assert_true(add(h.ctrl, relays[1], "/" TARGET_NQN, &err) > 0);
	read_through(&h, relays[1]);
	relay_mode(relays[0], RELAY_HOLD);
	read_through(&h, relays[1]);
	relay_mode(relays[0], RELAY_PASS);
	host_close(&h);
	stop_relays();
}

static void not_added(void **state)
{
	struct weft_err err = { "" };
	struct host h;

	start_relays();
	h = host_open("", NS_512);
	assert_int_equal(add(h.ctrl, relays[0], "/nqn.2026-11.io.weft:other", &err), -EINVAL);
	assert_int_equal(add(h.ctrl, relays[0], "/" TARGET_NQN "?hurry", &err), -EINVAL);
	relay_mode(relays[0], RELAY_REFUSE);
	assert_true(add(h.ctrl, relays[0], "/" TARGET_NQN, &err) < 0);
	relay_mode(relays[0], RELAY_PASS);
	for (int i = 1; i < 8; i++) {
		err.text[0] = '\0';
		if (add(h.ctrl, relays[0], "/" TARGET_NQN, &err) < 0)
			fail_msg("path %d: %s", i, err.text);
	}
	assert_int_equal(add(h.ctrl, relays[0], "/" TARGET_NQN, &err), -EUSERS);
	assert_string_equal(err.text, "there are 8 paths already");
	read_through(&h, relays[0]);
	host_close(&h);
	stop_relays();
}

/* Nothing in flight is disturbed by a path that leaves in order. */
static void exchanged_under_load(void **state)
{
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	int first = 0, path;

	start_relays();
	ctrl = connect_with("");
	ns = open_ns(ctrl, NS_512);
	atomic_store(&io_job_more, true);
	io_job_init(&jobs[0], ctrl, ns, 0);
	need(!pthread_create(&jobs[0].thread, NULL, io_job_run, &jobs[0]));
	for (unsigned i = 0; i < CUTS; i++) {
		while ((path = add(ctrl, relays[i % PATHS], "/" TARGET_NQN, &err)) == -EUSERS)
			usleep(1000); /* those that leave are still there */
		if (path < 0)
			fail_msg("%s", err.text);
		assert_int_equal(weft_path_remove(ctrl, (unsigned)first, &err), 0);
		first = path;
	}
	atomic_store(&io_job_more, false);
	pthread_join(jobs[0].thread, NULL);
	io_job_end(&jobs[0]);
	weft_ns_close(ns);
	weft_disconnect(ctrl);
	stop_relays();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_are_used),
		cmocka_unit_test(one_is_enough),
		cmocka_unit_test(none_is_not),
		cmocka_unit_test(mistaken),
		cmocka_unit_test(cut_under_load),
		cmocka_unit_test(one_stays_down),
		cmocka_unit_test(both_go_and_come),
		cmocka_unit_test(one_falls_silent),
		cmocka_unit_test(no_path_for_long),
		cmocka_unit_test(seen),
		cmocka_unit_test(stalls_are_counted),
		cmocka_unit_test(added_and_removed),
		cmocka_unit_test(removed_does_not_reconnect),
		cmocka_unit_test(not_added),
		cmocka_unit_test(exchanged_under_load),
		cmocka_unit_test(both_are_cut_at_once),
		cmocka_unit_test(silent_after_another_came),
		cmocka_unit_test(the_last_is_not_probed),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
