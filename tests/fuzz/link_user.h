/* link_user.h - a link's user: opens it, orders, closes it, and checks what it is told.
 *
 *   program ─▶ op_submit() ─▶ order ─▶ link ◀─ bytes or requests ─▶ controller
 *   ready(), done(), closed() ─▶ once, in order, and for a reason
 *
 * The link and its controller are of any transport; the controller is the harness's. */
#ifndef WEFT_FUZZ_LINK_USER_H
#define WEFT_FUZZ_LINK_USER_H

#include "order.h"

/* What the transport's controller has to say. */
struct controller {
	/* The link is ready: it may be, and learns what the controller takes. */
	void (*ready)(struct weft_link *link);
	/* What comes of @o is as the controller meant it. */
	bool (*is_strict)(const struct order *o);
	/* The link ended; @expected: its user closed it, or set-up took too long. */
	void (*closed)(struct weft_link *link, bool expected);
	/* What @o is owed. */
	void (*answer)(struct order *o);
};

extern const struct controller controller; /* the harness's */

struct link_user {
	struct weft_reactor *reactor;
	struct weft_link *link; /* NULL: freed, or never there */
	bool is_ready, is_closed;
};

extern struct link_user user;

void user_create(void);
/* On -errno there is no link. @free_inside: it is freed in closed(). */
int user_open(const struct weft_link_transport *transport, struct weft_link_options *options,
	      bool free_inside);
bool user_is_usable(void);
void user_turns(unsigned n);
/* A controller that kept the rules gets every order done. */
void user_answer_all(void);
/* Closes the link, which must end, and frees it. */
void user_end(void);

/* --- operations ------------------------------------------------------------------------------- */

void op_clock(void);
void op_submit(void);
void op_close(void);
/* One of the orders that are not yet answered; NULL: there is none. */
struct order *pick_order(void);

#endif
