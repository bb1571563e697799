/* aside_now.c - in place of weft_aside_start(): the work is done at once, and nothing has a thread of
 * its own. For programs that turn their reactors by hand. */
#include "reactor/aside.h"

static void come_back(struct weft_msg *mail)
{
	struct weft_aside *aside = container_of(mail, struct weft_aside, op.mail);

	aside->done(aside, aside->op.res);
}

void __wrap_weft_aside_start(struct weft_aside *aside, struct weft_reactor *r,
			     int (*work)(struct weft_aside *aside),
			     void (*done)(struct weft_aside *aside, int rc));
void __wrap_weft_aside_start(struct weft_aside *aside, struct weft_reactor *r,
			     int (*work)(struct weft_aside *aside),
			     void (*done)(struct weft_aside *aside, int rc))
{
	aside->done = done;
	aside->op.res = work(aside);
	aside->op.mail.fn = come_back;
	weft_reactor_post(r, &aside->op.mail);
}
