/* interrupt.c - FUSE requests whose caller was interrupted: only the reply is early (EINTR, after a
 * second or ten); the thread, its memory and its range lock stay until the I/O is done.
 *
 *   begin ─▶ waiting ─────────────────────────▶ end: the thread replies
 *               └─ interrupted ─▶ a timer ─▶ given up: reply EINTR ─▶ end: no reply is left to send
 *
 * A command cannot be taken back: the library may send it again whenever the target comes back.
 * Programs do not expect EINTR from I/O on a file because a timer ticked: so an interrupted caller
 * waits for a moment longer, and for longer still while the target is live.
 *
 * Invariant: the thread that takes a call off the list replies to its request. */
#include "cli/mount/interrupt.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "base/clock.h"

#define PATIENCE_MS      1000
#define PATIENCE_LIVE_MS 10000
#define GIVEN_UP_MAX     48 /* each has a thread */

int weft_mount_calls_init(struct weft_mount_calls *calls)
{
	pthread_mutex_init(&calls->lock, NULL);
	weft_list_init(&calls->waiting);
	calls->given_up = 0;
	calls->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return calls->interrupt_fd < 0 ? -errno : 0;
}

/* Called in one of libfuse's threads; also in the one that registers it. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct weft_mount_call *call = data;
	struct weft_mount_calls *calls = call->calls;

	pthread_mutex_lock(&calls->lock);
	call->interrupted_ms = weft_monotonic_ms();
	eventfd_write(calls->interrupt_fd, 1);
	pthread_mutex_unlock(&calls->lock);
}

/* Put on the list after libfuse has released the request's lock: a reply frees that. */
bool weft_mount_call_begin(struct weft_mount_calls *calls, struct weft_mount_call *call,
			   fuse_req_t req)
{
	bool full;

	*call = (struct weft_mount_call){ .calls = calls, .req = req };
	weft_list_init(&call->link);
	fuse_req_interrupt_func(req, on_interrupt, call);
	pthread_mutex_lock(&calls->lock);
	full = calls->given_up >= GIVEN_UP_MAX;
	if (!full)
		weft_list_push(&calls->waiting, &call->link);
	if (call->interrupted_ms) /* already: signals.c did not find it on the list then */
		eventfd_write(calls->interrupt_fd, 1);
	pthread_mutex_unlock(&calls->lock);
	if (full) {
		fuse_req_interrupt_func(req, NULL, NULL);
		fuse_reply_err(req, EIO);
	}
	return !full;
}

bool weft_mount_call_end(struct weft_mount_call *call)
{
	struct weft_mount_calls *calls = call->calls;

	pthread_mutex_lock(&calls->lock);
	weft_list_remove(&call->link);
	calls->given_up -= call->given_up;
	pthread_mutex_unlock(&calls->lock);
	if (!call->given_up)
		fuse_req_interrupt_func(call->req, NULL, NULL); /* @call may go after this */
	return !call->given_up;
}

static void reply_eintr(struct weft_mount_calls *calls, struct weft_mount_call *call)
{
	weft_list_remove(&call->link);
	call->given_up = true;
	calls->given_up++;
	fuse_reply_err(call->req, EINTR);
}

int weft_mount_calls_expire(struct weft_mount_calls *calls, bool live)
{
	uint64_t now = weft_monotonic_ms(), patience = live ? PATIENCE_LIVE_MS : PATIENCE_MS;
	struct weft_mount_call *call, *next;
	eventfd_t count;
	int again = -1;

	pthread_mutex_lock(&calls->lock);
	eventfd_read(calls->interrupt_fd, &count);
	weft_list_for_each_safe(call, next, &calls->waiting, link) {
		if (call->interrupted_ms && now - call->interrupted_ms >= patience)
			reply_eintr(calls, call);
		else if (call->interrupted_ms)
			again = PATIENCE_MS / 4;
	}
	pthread_mutex_unlock(&calls->lock);
	return again;
}
