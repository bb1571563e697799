/* offload.c - see offload.h. */
#include "reactor/offload.h"

#include <assert.h>

static int offload_on_thread(struct weft_op *op)
{
	struct weft_offload *offload = container_of(op, struct weft_offload, op);

	return offload->work(offload);
}

/* The thread has nothing left to do: joining it does not block. */
static void offload_done(struct weft_op *op, int rc)
{
	struct weft_offload *offload = container_of(op, struct weft_offload, op);

	assert_on(op->reactor);
	weft_workers_destroy(&offload->thread);
	offload->done(offload, rc);
}

void weft_offload_start(struct weft_offload *offload, struct weft_reactor *r,
			int (*work)(struct weft_offload *offload),
			void (*done)(struct weft_offload *offload, int rc))
{
	assert_on(r);
	assert(work && done);
	offload->work = work;
	offload->done = done;
	offload->op.done = offload_done;
	weft_workers_init(&offload->thread, 1);
	weft_workers_call(&offload->thread, r, &offload->op, offload_on_thread);
}
