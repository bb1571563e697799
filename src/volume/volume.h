/* volume.h - a block volume on top of libweft: a namespace that outlives its controller.
 *
 *   any bytes:  weft_volume_read() … ─┐
 *   blocks:     weft_volume_run()  … ─┴─▶ a free queue ─▶ libweft ─▶ target
 *                                              └─ controller dead: the connection makes another
 *
 * Ownership: the caller owns the connection and the volumes that it has opened, and closes each
 * once, in any order. The URI and the options stay the caller's and in place until
 * weft_volume_conn_close(). A buffer and a command are the caller's again when the call returns.
 *
 * Threads: any function may be called in any thread. Nobody uses what is being closed, and no I/O
 * of it is under way. */
#ifndef WEFT_VOLUME_H
#define WEFT_VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <weft/host.h>

struct weft_volume_conn;
struct weft_volume;

/* --- the connection, of several volumes ------------------------------------------------------- */

/* @options may be NULL. A discovery controller has no volumes: see weft_volume_conn_info(). */
int weft_volume_conn_open(const char *uri, const struct weft_options *options,
			  struct weft_volume_conn **conn, struct weft_err *err);
/* Volumes that are still open have no namespace any more, and are still to be closed. @conn may be
 * NULL. */
void weft_volume_conn_close(struct weft_volume_conn *conn);

/* Of the first controller; constant. */
const struct weft_ctrl_info *weft_volume_conn_info(const struct weft_volume_conn *conn);
/* Never waits: a controller that is being replaced is not live. */
bool weft_volume_conn_is_live(struct weft_volume_conn *conn);
/* As weft_ns_list(). */
int weft_volume_conn_list_ns(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
			     struct weft_err *err);
/* As weft_ctrl_event_fd() and weft_ctrl_next_event(), over all controllers of the connection. */
int weft_volume_conn_event_fd(const struct weft_volume_conn *conn);
bool weft_volume_conn_next_event(struct weft_volume_conn *conn, struct weft_event *event);

/* A volume, for the length of a call. */
struct weft_volume_view {
	void *user;             /* of weft_volume_set_user(); NULL: was not set */
	struct weft_ctrl *ctrl; /* the present controller */
	struct weft_ns *ns;     /* NULL: that does not show it */
	unsigned nr_running;    /* I/Os under way */
};

/* Shows @look each open volume. While the controller is being replaced this waits for I/O of the
 * old one; @look may not wait, and calls no function of a volume. */
void weft_volume_conn_for_each(struct weft_volume_conn *conn,
			       void (*look)(void *arg, const struct weft_volume_view *view),
			       void *arg);

/* --- a volume --------------------------------------------------------------------------------- */

int weft_volume_open(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err);
/* After this returns weft_volume_conn_for_each() does not show @user any more. */
void weft_volume_close(struct weft_volume *volume);
/* What weft_volume_conn_for_each() shows with @volume; the caller owns it. */
void weft_volume_set_user(struct weft_volume *volume, void *user);

/* As of now, or, if this controller does not show it, as it was at first. While the controller is
 * being replaced this waits for I/O of the old one. */
void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info);
/* As of now, or as it was seen last. Never waits. */
void weft_volume_info_nowait(struct weft_volume *volume, struct weft_ns_info *info);
/* Whether a path of this controller shows it, as the library knows without a command. */
bool weft_volume_is_visible(struct weft_volume *volume);
/* Whether @other is what @volume is on this controller. */
bool weft_volume_is_same(struct weft_volume *volume, const struct weft_volume *other);

/* --- I/O of whole blocks ---------------------------------------------------------------------- */

/* weft_run() on a free queue; sets @cmd->ns. -EIO: the target is gone for longer than loss_timeout,
 * and cannot be connected to again; or it is not known whether the command was carried out. Not for
 * a flush. */
int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err);

/* A flush covers writes to former controllers, too. -EIO: one of them, with a volatile cache, died
 * before they were flushed. That is reported once; *@flush_reported is how far this caller was
 * told, and begins with what weft_volume_flush_reported() returns. -ENOTRECOVERABLE: the same,
 * reported every time, because controllers do not share the namespace. */
int weft_volume_flush(struct weft_volume *volume, unsigned *flush_reported, struct weft_err *err);
/* A loss that nobody was told of yet is reported to new callers, too. */
unsigned weft_volume_flush_reported(struct weft_volume *volume);

/* As weft_ns_extents(), but never fails: unknown blocks count as data. @length and @max are not
 * 0. */
unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max);

/* --- byte I/O: any offset, any length, an end, as a file has ---------------------------------- */

uint64_t weft_volume_size(struct weft_volume *volume);
/* Bytes read or written, fewer at the end of the volume, or -errno. A write that begins there or
 * beyond fails with -ENOSPC. Writes of one volume through these calls lose none of each other's bytes; one by
 * weft_volume_run() to a part of the same block at the same time may. */
ssize_t weft_volume_read(struct weft_volume *volume, void *buf, size_t length, uint64_t offset);
ssize_t weft_volume_write(struct weft_volume *volume, const void *buf, size_t length,
			  uint64_t offset, unsigned flags);
/* Bytes beyond the end are left out. With WEFT_UNMAP space may be deallocated. */
int weft_volume_zero(struct weft_volume *volume, uint64_t length, uint64_t offset, unsigned flags);
/* Where, from @offset on, the next data is, or the next hole: the end of the volume is one. -ENXIO:
 * there is none, or @offset is beyond the end. */
off_t weft_volume_seek(struct weft_volume *volume, uint64_t offset, bool data);

#endif
