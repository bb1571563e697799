/* channel.h - two processes of one user hand things over: frames over a private socket.
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

/* Descriptors that are still in it are closed. */
void weft_frame_free(struct weft_frame *frame);

/* The descriptor of a socket under a name that only this machine knows, or -errno. */
int weft_channel_listen(char name[WEFT_CHANNEL_NAME_MAX]);
/* The other side must be of this process's user, or of root; @pid is its. */
int weft_channel_accept(int listener, pid_t *pid, struct weft_err *err);
int weft_channel_connect(const char *name, pid_t *pid, struct weft_err *err);

/* Descriptors of @frame stay the caller's. */
int weft_channel_send(int fd, const struct weft_frame *frame);
int weft_channel_send_step(int fd, const char *step);
void weft_channel_send_failed(int fd, const char *why);
/* A frame for @step; -errno and the sentence set when it is another one or none comes. One that the
 * other side could send counts, however late it is looked for; after a limit that passed, the other
 * side can send nothing more. */
int weft_channel_recv(int fd, const char *step, unsigned limit_ms, struct weft_frame *frame,
		      struct weft_err *err);

#endif
