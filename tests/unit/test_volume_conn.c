/* test_volume_conn.c - volume_conn.c: what happens while a dead controller is replaced. The target that is
 * asked for the namespaces is as slow as it likes: nobody else waits for it, and what was closed
 * meanwhile is not found. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "volume/internal.h"
#include "running.h"

/* --- the library ------------------------------------------------------------------------------ */

struct weft_ctrl {
	int event_fd;
	enum weft_state state;
};

struct weft_ns {
	uint32_t nsid;
	bool unflushed;
};

static struct weft_volume_conn *conn;
static unsigned ctrls, spaces, opens;
static uint64_t size = 4096;             /* of each namespace */
static bool shared = true;               /* … by controllers */
static void (*meanwhile)(uint32_t nsid); /* while the target looks at it */

int weft_connect(const char *uri, const struct weft_options *options, struct weft_ctrl **ctrl,
		 struct weft_err *err)
{
	*ctrl = malloc(sizeof(**ctrl));
	**ctrl = (struct weft_ctrl){ eventfd(0, 0), WEFT_LIVE };
	ctrls++;
	return 0;
}

void weft_disconnect(struct weft_ctrl *ctrl)
{
	close(ctrl->event_fd);
	free(ctrl);
	ctrls--;
}

void weft_ctrl_info(struct weft_ctrl *ctrl, struct weft_ctrl_info *info)
{
	*info = (struct weft_ctrl_info){};
}

enum weft_state weft_ctrl_state(struct weft_ctrl *ctrl, struct weft_err *why)
{
	return ctrl->state;
}

int weft_ctrl_event_fd(struct weft_ctrl *ctrl)
{
	return ctrl->event_fd;
}

bool weft_ctrl_next_event(struct weft_ctrl *ctrl, struct weft_event *event)
{
	return false;
}

int weft_ns_list(struct weft_ctrl *ctrl, uint32_t *nsids, unsigned max, struct weft_err *err)
{
	return 0;
}

int weft_ns_open(struct weft_ctrl *ctrl, uint32_t nsid, struct weft_ns **ns, struct weft_err *err)
{
	opens++;
	if (meanwhile)
		meanwhile(nsid);
	*ns = malloc(sizeof(**ns));
	**ns = (struct weft_ns){ .nsid = nsid };
	spaces++;
	return 0;
}

void weft_ns_close(struct weft_ns *ns)
{
	spaces -= ns != NULL;
	free(ns);
}

void weft_ns_info(struct weft_ns *ns, struct weft_ns_info *info)
{
	*info = (struct weft_ns_info){ .nsid = ns->nsid,
				       .nguid = { 1 },
				       .size = size,
				       .shared = shared,
				       .unflushed = ns->unflushed };
}

unsigned weft_ns_paths(struct weft_ns *ns, struct weft_ns_path *paths, unsigned max)
{
	return 0;
}

/* Not asked for here. */
int weft_ns_extents(struct weft_ns *ns, uint64_t offset, uint64_t length,
		    struct weft_ns_extent *extents, unsigned max, struct weft_err *err)
{
	return -EOPNOTSUPP;
}

int weft_queue_pool_open(struct weft_ctrl *ctrl, struct weft_queue_pool **queues,
			 struct weft_err *err)
{
	return 0;
}

void weft_queue_pool_close(struct weft_queue_pool *queues)
{
}

/* What becomes of the next command; those after it succeed. @dies: its controller is dead by then. */
static struct {
	int rc;
	uint16_t status;
	bool dies;
} fate;
static unsigned runs;

int weft_queue_pool_run(struct weft_queue_pool *queues, struct weft_cmd *cmd, struct weft_err *err)
{
	int rc = fate.rc;

	runs++;
	cmd->status = fate.status;
	if (fate.dies) {
		conn->vctrl.ctrl->state = WEFT_DEAD;
		conn->replace_tried_ms = 0;
	}
	memset(&fate, 0, sizeof(fate));
	return rc;
}

/* --- cases ------------------------------------------------------------------------------------ */

enum { VOLUMES = 3 };

static struct weft_volume *volumes[VOLUMES + 1]; /* by nsid */

static int set_up(void **state)
{
	meanwhile = NULL;
	assert_int_equal(weft_volume_conn_open("", NULL, &conn, NULL), 0);
	for (uint32_t nsid = 1; nsid <= VOLUMES; nsid++)
		assert_int_equal(weft_volume_open(conn, nsid, &volumes[nsid], NULL), 0);
	opens = 0;
	return 0;
}

static void close_volume(uint32_t nsid)
{
	if (volumes[nsid])
		weft_volume_close(volumes[nsid]);
	volumes[nsid] = NULL;
}

static int tear_down(void **state)
{
	for (uint32_t nsid = 1; nsid <= VOLUMES; nsid++)
		close_volume(nsid);
	weft_volume_conn_close(conn);
	assert_int_equal(spaces, 0);
	assert_int_equal(ctrls, 0);
	return 0;
}

static void replace(void)
{
	conn->vctrl.ctrl->state = WEFT_DEAD;
	conn->replace_tried_ms = 0;
	assert_true(weft_volume_conn_replace_if_dead(conn, -ENOTCONN));
	assert_int_equal(ctrls, 1);
	assert_null(conn->reopening);
}

static unsigned kept_waiting;

static void others_go_on(uint32_t nsid)
{
	if (pthread_mutex_trylock(&conn->lock))
		kept_waiting++;
	else
		pthread_mutex_unlock(&conn->lock);
	if (pthread_rwlock_tryrdlock(&conn->ctrl_lock))
		kept_waiting++;
	else
		pthread_rwlock_unlock(&conn->ctrl_lock);
}

/* Each is looked for once, in each life. */
static void silence(void **state)
{
	meanwhile = others_go_on;
	for (unsigned life = 1; life <= 3; life++) {
		replace();
		assert_int_equal(kept_waiting, 0);
		assert_int_equal(opens, life * VOLUMES);
		assert_int_equal(spaces, VOLUMES);
	}
	for (uint32_t nsid = 1; nsid <= VOLUMES; nsid++)
		assert_int_equal(volumes[nsid]->ns->nsid, nsid);
}

static uint64_t size_at_a_glance(struct weft_volume *volume)
{
	struct weft_ns_info info;

	weft_volume_info_nowait(volume, &info);
	return info.size;
}

/* Who replaces the line waits for its I/O, and who only looks does not wait for that. */
static void glances(void **state)
{
	assert_int_equal(size_at_a_glance(volumes[1]), 4096);
	size = 8192;
	assert_int_equal(size_at_a_glance(volumes[1]), 8192);
	pthread_rwlock_wrlock(&conn->ctrl_lock);
	assert_int_equal(size_at_a_glance(volumes[1]), 8192);
	assert_int_equal(size_at_a_glance(volumes[2]), 4096);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	assert_int_equal(size_at_a_glance(volumes[2]), 8192);
	size = 4096;
}

static void closes_that_one(uint32_t nsid)
{
	if (nsid == 2)
		close_volume(2);
}

static void closes_all(uint32_t nsid)
{
	for (nsid = 1; nsid <= VOLUMES; nsid++)
		close_volume(nsid);
}

static void closes_the_last(uint32_t nsid)
{
	if (nsid == 1)
		close_volume(VOLUMES);
}

static void closed_meanwhile(void **state)
{
	static const struct {
		void (*what)(uint32_t nsid);
		unsigned opens, left;
	} rows[] = {
		{ closes_that_one, 3, 2 },
		{ closes_the_last, 2, 2 },
		{ closes_all, 1, 0 },
	};

	for_each_row(i, rows) {
		tear_down(state);
		set_up(state);
		meanwhile = rows[i].what;
		replace();
		assert_int_equal(opens, rows[i].opens);
		assert_int_equal(spaces, rows[i].left);
	}
}

/* A command that a controller has answered is over, whatever became of the controller since. */
static void answered(void **state)
{
	enum { WRITE_FAULT = 0x280, DNR = 0x4000 };
	static const struct {
		int rc;
		uint16_t status;
		bool dies;
		int said;
		unsigned runs;
	} rows[] = {
		{ -EIO, 0, true, 0, 2 }, /* it had no path for too long */
		{ -ENOTCONN, 0, true, 0, 2 },
		{ -EIO, 0, false, -EIO, 1 },
		{ -EIO, WRITE_FAULT, true, -EIO, 1 },
		{ -EIO, WRITE_FAULT | DNR, true, -EIO, 1 },
		{ -ECONNRESET, 0, true, -EIO, 1 },
	};

	for_each_row(i, rows) {
		struct weft_cmd cmd = { .op = WEFT_WRITE };

		fate.rc = rows[i].rc;
		fate.status = rows[i].status;
		fate.dies = rows[i].dies;
		runs = 0;
		assert_int_equal(weft_volume_run(volumes[1], &cmd, NULL), rows[i].said);
		assert_int_equal(runs, rows[i].runs);
		conn->vctrl.ctrl->state = WEFT_LIVE;
	}
}

static void die_unflushed(struct weft_volume *volume)
{
	volume->ns->unflushed = true;
	replace();
}

/* Every one who flushes is told once; who comes later is told if nobody was. */
static void unflushed(void **state)
{
	unsigned one = 0, other = 0, late;

	die_unflushed(volumes[1]);
	late = weft_volume_flush_reported(volumes[1]);
	assert_int_equal(weft_volume_flush(volumes[1], &one, NULL), -EIO);
	assert_int_equal(weft_volume_flush(volumes[1], &one, NULL), 0);
	assert_int_equal(weft_volume_flush(volumes[1], &other, NULL), -EIO);
	assert_int_equal(weft_volume_flush(volumes[1], &late, NULL), -EIO);
	late = weft_volume_flush_reported(volumes[1]);
	assert_int_equal(weft_volume_flush(volumes[1], &late, NULL), 0);

	replace(); /* nothing was written since */
	assert_int_equal(weft_volume_flush(volumes[1], &one, NULL), 0);
	die_unflushed(volumes[1]);
	assert_int_equal(weft_volume_flush(volumes[1], &one, NULL), -EIO);
	one = 0;
	assert_int_equal(weft_volume_flush(volumes[2], &one, NULL), 0);
}

/* Of several who have opened one namespace, as NBD clients do. */
static void unflushed_of_several(void **state)
{
	struct weft_volume *early, *late;
	unsigned told;

	assert_int_equal(weft_volume_open(conn, 1, &early, NULL), 0);
	early->ns->unflushed = true;
	die_unflushed(volumes[1]);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(weft_volume_open(conn, 1, &late, NULL), 0);
		told = weft_volume_flush_reported(late);
		assert_int_equal(weft_volume_flush(late, &told, NULL), i ? 0 : -EIO);
		told = 0;
		assert_int_equal(weft_volume_flush(early, &told, NULL), -EIO);
		weft_volume_close(late);
	}
	assert_int_equal(weft_volume_open(conn, 2, &late, NULL), 0);
	told = weft_volume_flush_reported(late);
	assert_int_equal(weft_volume_flush(late, &told, NULL), 0);
	weft_volume_close(late);
	weft_volume_close(early);
}

/* The flush finds the controller dead, and the next one has an answer for it: not a success. */
static void unflushed_meanwhile(void **state)
{
	static const int failures[] = { -ENOTCONN, -EIO };
	unsigned told = 0;

	for_each_row(i, failures) {
		volumes[1]->ns->unflushed = true;
		fate.rc = failures[i];
		fate.dies = true;
		assert_int_equal(weft_volume_flush(volumes[1], &told, NULL), -EIO);
		assert_int_equal(weft_volume_flush(volumes[1], &told, NULL), 0);
	}
}

/* What is told was not caused by the line, even if that is dead as well: another one is not asked. */
static void unflushed_and_dead_again(void **state)
{
	unsigned told = 0;

	die_unflushed(volumes[1]);
	conn->vctrl.ctrl->state = WEFT_DEAD;
	conn->replace_tried_ms = 0;
	runs = 0;
	assert_int_equal(weft_volume_flush(volumes[1], &told, NULL), -EIO);
	assert_int_equal(runs, 0);
}

/* No other controller has it: an error is not followed by a lie. */
static void unflushed_for_good(void **state)
{
	unsigned told = 0;

	shared = false;
	die_unflushed(volumes[1]);
	for (unsigned life = 0; life < 3; life++) {
		assert_int_equal(weft_volume_flush(volumes[1], &told, NULL), -ENOTRECOVERABLE);
		told = weft_volume_flush_reported(volumes[1]);
		assert_int_equal(weft_volume_flush(volumes[1], &told, NULL), -ENOTRECOVERABLE);
		replace();
	}
	assert_int_equal(weft_volume_flush(volumes[2], &told, NULL), 0);
	shared = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(silence, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(glances, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unflushed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unflushed_of_several, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unflushed_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unflushed_and_dead_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unflushed_for_good, set_up, tear_down),
	};

	alarm(60); /* who waits for a lock that never comes */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
