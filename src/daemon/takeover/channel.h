/* channel.h - the channel of a takeover: frames over a private socket between two processes of one
 * user.
 *
 *   a frame:  lengths │ document (JSON) │ bytes │ descriptors
 *
 * A document is a map whose "step" says what the frame is for. A side that cannot go on sends the
 * step "failed" with its reason in "why". All calls block, within a limit for the whole frame. */
#ifndef WEFT_DAEMON_TAKEOVER_CHANNEL_H
#define WEFT_DAEMON_TAKEOVER_CHANNEL_H

#include <jansson.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/items.h"

#define WEFT_CHANNEL_NAME_MAX 32

struct weft_frame {
	json_t *doc;
	struct weft_items bytes;
	struct weft_items fds; /* int */
};

/* Closes descriptors that are still in it. */
void weft_frame_free(struct weft_frame *frame);

/* Listens under a name that the kernel chooses: the descriptor, or -errno. */
int weft_channel_listen(char name[WEFT_CHANNEL_NAME_MAX]);
/* The other side must belong to this process's user, or to root; @pid is its pid. */
int weft_channel_accept(int listener, pid_t *pid, struct weft_err *err);
int weft_channel_connect(const char *name, pid_t *pid, struct weft_err *err);

/* Descriptors of @frame stay the caller's. */
int weft_channel_send(int fd, const struct weft_frame *frame);
int weft_channel_send_step(int fd, const char *step);
void weft_channel_send_failed(int fd, const char *why);
/* Receives a frame for @step; -errno and the sentence set if another one comes, or none. A frame
 * that the other side could send in time counts, however late it is read; after the limit the other
 * side can send nothing more. */
int weft_channel_recv(int fd, const char *step, unsigned limit_ms, struct weft_frame *frame,
		      struct weft_err *err);

#endif
