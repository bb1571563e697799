/* socket.h - the control socket: a process that may open it controls the target. */
#ifndef WEFT_DAEMON_CONTROL_SOCKET_H
#define WEFT_DAEMON_CONTROL_SOCKET_H

#include <stdbool.h>

#include "base/err.h"
#include "daemon/control/rpc.h"
#include "reactor/reactor.h"

struct weft_control_socket;

/* Binds the socket, mode 0600; replaces one that a dead process left. @make_dir: creates the
 * folder, mode 0700, and refuses one that is not ours. */
int weft_control_socket_open(struct weft_control_socket **c, const char *path, bool make_dir,
			     struct weft_err *err);
/* The same with a socket, bound at @path, of the process that is taken over. Owns @fd. */
int weft_control_socket_adopt(struct weft_control_socket **c, const char *path, int fd);
/* Starts to answer. Everything from here on runs on @r. */
int weft_control_socket_serve(struct weft_control_socket *c, struct weft_reactor *r,
			      const struct weft_rpc *rpc, struct weft_err *err);
/* Paused, the socket accepts no new call and no new client. */
void weft_control_socket_pause(struct weft_control_socket *c);
void weft_control_socket_resume(struct weft_control_socket *c);
unsigned weft_control_socket_calls(const struct weft_control_socket *c); /* under way */
int weft_control_socket_fd(const struct weft_control_socket *c);         /* once it is served */
/* Not while paused. Removes the socket, drops the clients, waits for the calls under way; then
 * @done. Frees @c. */
void weft_control_socket_close(struct weft_control_socket *c, void (*done)(void *arg), void *arg);

/* --- unix_listen.c: a listening Unix socket at a path ----------------------------------------- */

/* The descriptor, non-blocking, or -errno; see weft_control_socket_open(). */
int weft_unix_listen(const char *path, bool make_dir, struct weft_err *err);
/* Whatever socket is there. */
void weft_unix_remove(const char *path);

#endif
