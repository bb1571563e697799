/* xfer.c - an xfer: moves one piece, step by step.
 *
 *   idle ──take──▶ get ──▶ put ─┐
 *     │            (verify:     │ one step for each run of data or of zeroes
 *     │             compare)    │
 *     ◀─────────────────────────┘
 *
 * Each step completes at once, completes later, or must be tried again; its end decides the
 * next. */
#include <errno.h>
#include <string.h>

#include "cli/cp/internal.h"

#define GRAIN (64u << 10)

/* --- the end of a piece ----------------------------------------------------------------------- */

static void piece_done(struct cp_xfer *xfer)
{
	xfer->state = XFER_IDLE;
	atomic_fetch_add(&xfer->worker->cp->done, xfer->length);
}

static void piece_fail(struct cp_xfer *xfer, int rc)
{
	xfer->state = XFER_IDLE;
	weft_cp_piece_failed(xfer->worker->cp, xfer, rc);
}

/* --- idle: take a piece ----------------------------------------------------------------------- */

static int start_idle(struct cp_xfer *xfer)
{
	return weft_cp_take_piece(xfer->worker->cp, xfer) ? CP_DONE : CP_LATER;
}

static void begin_put(struct cp_xfer *xfer)
{
	struct cp *cp = xfer->worker->cp;

	xfer->state = XFER_PUT;
	xfer->at = 0;
	xfer->put_length = weft_cp_padded(cp, xfer->length);
	if (!xfer->hole)
		memset(xfer->buf + xfer->length, 0, xfer->put_length - xfer->length);
	if (cp->ask->verify || cp->to->ops->lost)
		weft_cp_keep_sum(cp, xfer);
}

static void finish_idle(struct cp_xfer *xfer)
{
	xfer->at = 0;
	xfer->err.text[0] = '\0';
	if (xfer->hole)
		begin_put(xfer);
	else
		xfer->state = XFER_GET;
}

/* --- get -------------------------------------------------------------------------------------- */

static int start_get(struct cp_xfer *xfer)
{
	struct cp *cp = xfer->worker->cp;
	struct cp_endpoint *from = cp->verifying ? cp->to : cp->from;

	return atomic_load(&cp->stop) ? -ECANCELED : from->ops->get(from, xfer);
}

static void finish_get(struct cp_xfer *xfer)
{
	struct cp *cp = xfer->worker->cp;

	if (cp->verifying) {
		weft_cp_check_sum(cp, xfer);
		piece_done(xfer);
	} else if (!xfer->length) {
		piece_done(xfer); /* the stream had ended */
	} else {
		begin_put(xfer);
	}
}

/* --- put -------------------------------------------------------------------------------------- */

static void choose_run(struct cp_xfer *xfer)
{
	const struct cp *cp = xfer->worker->cp;
	size_t grain = cp->to->block > GRAIN ? cp->to->block : GRAIN;

	xfer->run = xfer->put_length - xfer->at;
	xfer->run_zero = xfer->hole;
	if (!xfer->hole && cp->sparse)
		xfer->run = weft_zero_run(xfer->buf + xfer->at, xfer->run, grain, &xfer->run_zero);
}

static int start_put(struct cp_xfer *xfer)
{
	struct cp_endpoint *to = xfer->worker->cp->to;

	choose_run(xfer);
	return xfer->run_zero ? to->ops->zero(to, xfer) : to->ops->put(to, xfer);
}

static void finish_put(struct cp_xfer *xfer)
{
	if (xfer->run_zero)
		atomic_fetch_add(&xfer->worker->cp->zeroed, xfer->run);
	xfer->at += xfer->run;
	if (xfer->at == xfer->put_length)
		piece_done(xfer);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
	int (*start)(struct cp_xfer *xfer);
	void (*finish)(struct cp_xfer *xfer);
} states[] = {
	[XFER_IDLE] = { start_idle, finish_idle },
	[XFER_GET] = { start_get, finish_get },
	[XFER_PUT] = { start_put, finish_put },
};

static void finish_step(struct cp_xfer *xfer, int rc)
{
	if (rc < 0)
		piece_fail(xfer, rc);
	else
		states[xfer->state].finish(xfer);
}

void weft_cp_xfer_step_done(struct cp_xfer *xfer, int rc)
{
	xfer->started = false;
	finish_step(xfer, rc);
}

/* Runs until it has to wait. True: something was done. */
bool weft_cp_xfer_run(struct cp_xfer *xfer)
{
	bool moved = false;

	for (;;) {
		int rc = states[xfer->state].start(xfer);

		if (rc == CP_STARTED) {
			xfer->started = true;
			return true;
		}
		if (rc == CP_LATER) {
			/* After a stop signal it does not wait for data that may never come. */
			if (xfer->state == XFER_IDLE || !atomic_load(&xfer->worker->cp->stop))
				return moved;
			rc = -ECANCELED;
		}
		moved = true;
		finish_step(xfer, rc);
	}
}
