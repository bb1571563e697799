/* aside.c - one thing that may wait for a disk, on a thread of its own, while the reactor goes on. */
#include "reactor/aside.h"

static int on_thread(struct weft_op *op)
{
	struct weft_aside *aside = container_of(op, struct weft_aside, op);

	return aside->work(aside);
}

/* The thread has nothing left to do: its end is not a wait. */
static void came_back(struct weft_op *op, int rc)
{
	struct weft_aside *aside = container_of(op, struct weft_aside, op);

	weft_workers_destroy(&aside->thread);
	aside->done(aside, rc);
}

void weft_aside_start(struct weft_aside *aside, struct weft_reactor *r,
		      int (*work)(struct weft_aside *aside),
		      void (*done)(struct weft_aside *aside, int rc))
{
	aside->work = work;
	aside->done = done;
	aside->op.done = came_back;
	weft_workers_init(&aside->thread, 1);
	weft_workers_call(&aside->thread, r, &aside->op, on_thread);
}
