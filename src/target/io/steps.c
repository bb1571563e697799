/* steps.c - commands that take several operations of the storage, one after the other.
 *
 * A step submits one operation and returns true, or finishes the request and returns false. Some
 * backends complete inside submit: the loop here takes that in, instead of the stack. */
#include "target/io/io.h"

void tgt_io_steps(struct weft_req *req, bool (*step)(struct weft_req *req, int rc))
{
	struct tgt_req *treq = tgt_req(req);

	treq->step = step;
	treq->stepping = true;
	do {
		treq->stepped = false;
		if (!step(req, treq->step_rc))
			return; /* the request is answered, and may be gone */
	} while (treq->stepped);
	treq->stepping = false;
}

void tgt_io_step_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	treq->step_rc = rc;
	treq->stepped = true;
	if (!treq->stepping)
		tgt_io_steps(req, treq->step);
}
