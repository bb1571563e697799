/* mailbox.h - messages from any thread to one reactor. */
#ifndef WEFT_REACTOR_MAILBOX_H
#define WEFT_REACTOR_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct weft_msg;

struct weft_mailbox {
	struct weft_msg *_Atomic newest;
	atomic_bool asleep;  /* the owner may block: the sender that clears this writes wake_fd */
	atomic_uint senders; /* inside put() */
	int wake_fd;         /* eventfd; an engine waits for each write and never reads */
};

int weft_mailbox_open(struct weft_mailbox *box);
/* No put() may begin any more; waits for one that is about to return. */
void weft_mailbox_close(struct weft_mailbox *box);

void weft_mailbox_put(struct weft_mailbox *box, struct weft_msg *msg); /* from any thread */

/* The owner's. */
bool weft_mailbox_empty(struct weft_mailbox *box);
bool weft_mailbox_deliver(struct weft_mailbox *box); /* false: there was nothing */
/* Between the two every new message writes the wake fd. false: one is here already, do not
 * block. */
bool weft_mailbox_sleep(struct weft_mailbox *box);
void weft_mailbox_wake(struct weft_mailbox *box);

#endif
