/* held_case.h - commands that storage has in hand, and resets of the controllers that they came
 * by. */
#ifndef WEFT_TESTS_HELD_CASE_H
#define WEFT_TESTS_HELD_CASE_H

#include "host_case.h"
#include "storage/held.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- a command under way ---------------------------------------------------------------------- */

struct inflight_io {
	struct weft_cmd cmd;
	struct iovec iov;
	char data[1024];
	bool done;
};

static inline void on_inflight_done(struct weft_cmd *cmd)
{
	((struct inflight_io *)cmd->user)->done = true;
}

static inline void inflight_submit(struct host *h, struct inflight_io *f, enum weft_op_code op,
				   uint64_t length)
{
	f->iov = (struct iovec){ f->data, length };
	f->cmd = (struct weft_cmd){ .op = op,
				    .ns = h->ns,
				    .length = op == WEFT_COMPARE_AND_WRITE ? length / 2 : length,
				    .iov = &f->iov,
				    .iovcnt = 1,
				    .done = on_inflight_done,
				    .user = f };
	assert_int_equal(weft_submit(h->queue, &f->cmd), 0);
	weft_queue_poll(h->queue, 0);
}

/* A host may look at the namespace before it sends what it was given. */
static inline void wait_until_held(struct host *h, unsigned n)
{
	while (held_count() < n)
		weft_queue_poll(h->queue, 1);
}

static inline void inflight_wait(struct host *h, struct inflight_io *f)
{
	while (!f->done)
		weft_queue_poll(h->queue, -1);
	assert_int_equal(f->cmd.rc, 0);
}

/* --- Cross-Controller Reset ------------------------------------------------------------------- */

/* What names a controller, from Identify. */
struct instance {
	uint16_t cntlid;
	uint8_t ciu;
	uint64_t cirn;
};

static inline struct instance instance_of(struct weft_ctrl *ctrl)
{
	struct instance it;
	uint8_t id[4096];

	assert_int_equal(weft_identify(ctrl, 1, 0, id, NULL), 0);
	memcpy(&it.cntlid, id + 78, sizeof(it.cntlid));
	it.ciu = id[135];
	memcpy(&it.cirn, id + 136, sizeof(it.cirn));
	assert_true(it.ciu);
	return it;
}

struct reset {
	pthread_t thread;
	struct weft_ctrl *through;
	struct instance what;
	int rc;
	uint64_t result;
	atomic_bool over;
};

static inline int reset_now(struct weft_ctrl *through, const struct instance *what,
			    uint64_t *result)
{
	uint8_t sqe[64] = { 0x38 };
	struct weft_err err = { "" };

	memcpy(sqe + 40, &what->cntlid, sizeof(what->cntlid));
	sqe[42] = what->ciu;
	memcpy(sqe + 48, &what->cirn, sizeof(what->cirn));
	return weft_admin(through, sqe, NULL, 0, result, &err);
}

static inline void *reset_in_background(void *arg)
{
	struct reset *reset = arg;

	reset->rc = reset_now(reset->through, &reset->what, &reset->result);
	atomic_store(&reset->over, true);
	return NULL;
}

static inline void reset_start(struct reset *reset, struct weft_ctrl *through,
			       struct weft_ctrl *what)
{
	reset->through = through;
	reset->what = instance_of(what);
	atomic_init(&reset->over, false);
	assert_int_equal(pthread_create(&reset->thread, NULL, reset_in_background, reset), 0);
}

/* While storage holds a write of the one that is reset; until that one knows that it is lost. */
static inline void reset_with_held(struct reset *reset, struct weft_ctrl *by, struct host *lost,
				   struct inflight_io *late)
{
	held_hold(true);
	inflight_submit(lost, late, WEFT_WRITE, 512);
	wait_until_held(lost, 1);
	reset_start(reset, by, lost->ctrl);
	while (weft_ctrl_state(lost->ctrl, NULL) == WEFT_LIVE)
		usleep(100);
}

#endif
