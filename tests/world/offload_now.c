/* offload_now.c - in place of weft_offload_start(): the work is done at once, and nothing has a
 * thread of its own. For programs that turn their reactors by hand. */
#include "reactor/offload.h"

static void come_back(struct weft_msg *mail)
{
	struct weft_offload *offload = container_of(mail, struct weft_offload, op.mail);

	offload->done(offload, offload->op.res);
}

void __wrap_weft_offload_start(struct weft_offload *offload, struct weft_reactor *r,
			       int (*work)(struct weft_offload *offload),
			       void (*done)(struct weft_offload *offload, int rc));
void __wrap_weft_offload_start(struct weft_offload *offload, struct weft_reactor *r,
			       int (*work)(struct weft_offload *offload),
			       void (*done)(struct weft_offload *offload, int rc))
{
	offload->done = done;
	offload->op.res = work(offload);
	offload->op.mail.fn = come_back;
	weft_reactor_post(r, &offload->op.mail);
}
