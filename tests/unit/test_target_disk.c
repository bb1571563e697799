/* test_target_disk.c - a file system that takes its time over one namespace: hosts are served
 * meanwhile, by the control thread, too. */
#include "held_case.h"
#include "storage/stuck.h"

enum { SMALL = 1 << 20, LARGE = 2 << 20 };

static char image[] = "/tmp/weft-disk-XXXXXX";

static int with_file(void **state)
{
	char spec[64];

	if (truncate(image, SMALL) < 0)
		return -1;
	snprintf(spec, sizeof(spec), "file:%s", image);
	target_ns_add(NS_FILE, spec, 512, NULL);
	return 0;
}

static int without_file(void **state)
{
	target_ns_remove(NS_FILE);
	return 0;
}

static void keep_alive(struct weft_ctrl *ctrl)
{
	uint8_t sqe[64] = { 0x18 };
	struct weft_err err = { "" };

	if (weft_admin(ctrl, sqe, NULL, 0, NULL, &err) < 0)
		fail_msg("Keep Alive: %s", err.text);
}

/* A host that is there keeps its connection, another one comes, and both do I/O elsewhere. */
static void others_are_served(struct weft_ctrl *there)
{
	struct host h = host_open("", NS_512);
	struct inflight_io f = { .done = false };

	inflight_submit(&h, &f, WEFT_READ, 512);
	inflight_wait(&h, &f);
	for (int i = 0; i < 50; i++) {
		keep_alive(there);
		keep_alive(h.ctrl);
	}
	host_close(&h);
}

/* --- a call that waits for the disk ----------------------------------------------------------- */

struct waiting {
	pthread_t thread;
	int rc;
	atomic_bool over;
};

static void *resize_in_background(void *arg)
{
	struct waiting *w = arg;

	w->rc = target_ns_try_resize(NS_FILE, LARGE);
	atomic_store(&w->over, true);
	return NULL;
}

static void *remove_in_background(void *arg)
{
	struct waiting *w = arg;

	target_ns_remove(NS_FILE);
	atomic_store(&w->over, true);
	return NULL;
}

static void *stop_in_background(void *arg)
{
	struct waiting *w = arg;

	target_stop();
	atomic_store(&w->over, true);
	return NULL;
}

static void begin(struct waiting *w, void *(*what)(void *arg))
{
	*w = (struct waiting){ .rc = 0 };
	assert_int_equal(pthread_create(&w->thread, NULL, what, w), 0);
}

static void end(struct waiting *w)
{
	pthread_join(w->thread, NULL);
}

/* Until the disk has it. */
static void begin_stuck(struct waiting *w, void *(*what)(void *arg), enum stuck_at at)
{
	stuck_hold(at);
	begin(w, what);
	stuck_until_one_waits();
}

/* --- resize ----------------------------------------------------------------------------------- */

/* Commands of the namespace itself wait, and then meet its new size. */
static void resize_holds_up_nobody_else(void **state)
{
	struct host h = host_open("", NS_FILE);
	struct inflight_io f = { .done = false };
	struct weft_ns_info info;
	struct waiting resize;

	begin_stuck(&resize, resize_in_background, STUCK_AT_SYNC);
	inflight_submit(&h, &f, WEFT_READ, 512);
	others_are_served(h.ctrl);
	weft_queue_poll(h.queue, 0);
	assert_false(f.done);
	assert_false(atomic_load(&resize.over));
	stuck_hold(STUCK_NOWHERE);
	end(&resize);
	assert_int_equal(resize.rc, 0);
	inflight_wait(&h, &f);
	host_close(&h);
	h = host_open("", NS_FILE);
	weft_ns_info(h.ns, &info);
	assert_int_equal(info.size, LARGE);
	host_close(&h);
}

static void removal_waits_for_a_resize(void **state)
{
	struct weft_ctrl *ctrl = connect_with("");
	struct waiting resize, removal;

	begin_stuck(&resize, resize_in_background, STUCK_AT_SYNC);
	begin(&removal, remove_in_background);
	others_are_served(ctrl);
	assert_false(atomic_load(&removal.over));
	stuck_hold(STUCK_NOWHERE);
	end(&resize);
	end(&removal);
	assert_int_equal(resize.rc, -ENOENT);
	weft_disconnect(ctrl);
	with_file(state);
}

/* The subsystem goes, and before it the namespace did. */
static void stop_waits_for_a_resize(void **state)
{
	struct waiting resize, removal, stop;
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;
	char uri[512];

	snprintf(uri, sizeof(uri), "%s/%s", target_address(), TARGET_NQN);
	begin_stuck(&resize, resize_in_background, STUCK_AT_SYNC);
	begin(&removal, remove_in_background);
	while (target_ns_is_there(NS_FILE))
		usleep(100);
	begin(&stop, stop_in_background);
	while (!weft_connect(uri, NULL, &ctrl, &err))
		weft_disconnect(ctrl);
	assert_false(atomic_load(&stop.over));
	stuck_hold(STUCK_NOWHERE);
	end(&resize);
	end(&removal);
	end(&stop);
	assert_int_equal(resize.rc, -ENOENT);
	start_target(state);
	with_file(state);
}

/* --- removal ---------------------------------------------------------------------------------- */

static void close_holds_up_nobody(void **state)
{
	struct weft_ctrl *ctrl = connect_with("");
	struct waiting removal;

	begin_stuck(&removal, remove_in_background, STUCK_AT_CLOSE);
	others_are_served(ctrl);
	assert_false(atomic_load(&removal.over));
	stuck_hold(STUCK_NOWHERE);
	end(&removal);
	weft_disconnect(ctrl);
	with_file(state);
}

static int start_all(void **state)
{
	close(mkstemp(image));
	return start_target(state);
}

static int end_all(void **state)
{
	unlink(image);
	return end_target(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resize_holds_up_nobody_else, with_file,
						without_file),
		cmocka_unit_test_setup_teardown(removal_waits_for_a_resize, with_file,
						without_file),
		cmocka_unit_test_setup_teardown(stop_waits_for_a_resize, with_file, without_file),
		cmocka_unit_test_setup_teardown(close_holds_up_nobody, with_file, without_file),
	};

	return cmocka_run_group_tests(tests, start_all, end_all);
}
