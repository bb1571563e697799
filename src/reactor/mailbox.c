/* mailbox.c - messages from any thread to one reactor.
 *
 *   put:    push on a stack ─▶ asleep? ─▶ write wake fd     deliver: take the stack, reverse, run
 *   sleep:  asleep = true   ─▶ stack empty? ─▶ block
 *
 * A sender pushes, then reads asleep; the owner sets asleep, then reads the stack. With all four
 * sequentially consistent at least one of them sees the other, so no wake-up is lost.
 *
 * Invariant: if the owner is blocked and a message is on the stack, the wake fd has been written,
 * or its sender is about to write it. */
#include "reactor/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "reactor/reactor.h"

int weft_mailbox_open(struct weft_mailbox *box)
{
	atomic_init(&box->newest, NULL);
	atomic_init(&box->asleep, false);
	atomic_init(&box->senders, 0);
	box->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return box->wake_fd < 0 ? -errno : 0;
}

/* The message that ends a reactor may have run before its sender left put(). */
void weft_mailbox_close(struct weft_mailbox *box)
{
	while (atomic_load(&box->senders))
		sched_yield();
	close(box->wake_fd);
}

void weft_mailbox_put(struct weft_mailbox *box, struct weft_msg *msg)
{
	struct weft_msg *newest = atomic_load_explicit(&box->newest, memory_order_relaxed);

	atomic_fetch_add(&box->senders, 1);
	do {
		msg->next = newest;
	} while (!atomic_compare_exchange_weak(&box->newest, &newest, msg));

	/* Of several senders only the one that clears the flag pays for the system call. */
	if (atomic_load(&box->asleep) && atomic_exchange(&box->asleep, false))
		eventfd_write(box->wake_fd, 1);
	atomic_fetch_sub(&box->senders, 1); /* the box may be gone from here on */
}

bool weft_mailbox_empty(struct weft_mailbox *box)
{
	return !atomic_load_explicit(&box->newest, memory_order_relaxed);
}

static struct weft_msg *take_oldest_first(struct weft_mailbox *box)
{
	struct weft_msg *msg = atomic_exchange(&box->newest, NULL), *oldest = NULL, *next;

	for (; msg; msg = next) {
		next = msg->next;
		msg->next = oldest;
		oldest = msg;
	}
	return oldest;
}

bool weft_mailbox_deliver(struct weft_mailbox *box)
{
	struct weft_msg *msg, *next;

	if (weft_mailbox_empty(box))
		return false;
	for (msg = take_oldest_first(box); msg; msg = next) {
		next = msg->next; /* fn() may post or free it */
		assert(msg->fn);
		msg->fn(msg);
	}
	return true;
}

bool weft_mailbox_sleep(struct weft_mailbox *box)
{
	atomic_store(&box->asleep, true);
	return !atomic_load(&box->newest);
}

void weft_mailbox_wake(struct weft_mailbox *box)
{
	atomic_store_explicit(&box->asleep, false, memory_order_relaxed);
}
