/* internal.h - what the files of src/volume share. */
#ifndef WEFT_VOLUME_INTERNAL_H
#define WEFT_VOLUME_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "volume/volume.h"

/* --- queue_pool.c: many threads share a few I/O queues ---------------------------------------- */

struct weft_queue_pool;

/* Opens as many as the controller allows. */
int weft_queue_pool_open(struct weft_ctrl *ctrl, struct weft_queue_pool **queues,
			 struct weft_err *err);
/* Nobody is in weft_queue_pool_run(). @queues may be NULL. */
void weft_queue_pool_close(struct weft_queue_pool *queues);

/* weft_run() on a free queue, from any thread; waits for one if all are in use. */
int weft_queue_pool_run(struct weft_queue_pool *queues, struct weft_cmd *cmd, struct weft_err *err);

/* --- range_lock.c: a thread that changes blocks locks them ------------------------------------ */

struct weft_range_locks {
	pthread_mutex_t lock;
	pthread_cond_t released;
	struct weft_list held;
};

/* Lives on the stack of the thread that holds it. */
struct weft_range_lock {
	struct weft_list link;
	uint64_t start, end;
};

void weft_range_locks_init(struct weft_range_locks *ranges);
void weft_range_locks_destroy(struct weft_range_locks *ranges); /* nothing is locked */

/* Waits until no locked range overlaps; a thread locks one at a time. */
void weft_range_lock_acquire(struct weft_range_locks *ranges, struct weft_range_lock *range,
			     uint64_t start, uint64_t length);
void weft_range_lock_release(struct weft_range_locks *ranges, struct weft_range_lock *range);

/* --- volume_conn.c ---------------------------------------------------------------------------- */

/* A controller of the connection, until it is dead and replaced. */
struct weft_volume_ctrl {
	struct weft_ctrl *ctrl;
	struct weft_queue_pool *queues;
};

struct weft_volume_conn {
	const char *uri;
	const struct weft_options *options;
	struct weft_ctrl_info first_info; /* of the first controller */
	int epoll_fd;    /* @replaced_fd, and the events of the present controller */
	int replaced_fd; /* eventfd: controllers since it was last read */

	pthread_rwlock_t ctrl_lock; /* read: use @vctrl and the volumes' @ns; write: replace them */
	struct weft_volume_ctrl vctrl;

	pthread_mutex_t lock; /* of the list; never held while waiting for the target */
	struct weft_list volumes;
	bool closed; /* it is freed with the last of them */
	/* Its namespace is being opened on the next controller; NULL: none, or it was closed. */
	struct weft_volume *reopening;
	unsigned reopen_pass; /* how many passes there were */

	pthread_mutex_t replace_lock; /* held to connect again */
	uint64_t replace_tried_ms;
};

/* True: @rc came from a dead controller, which has not carried the command out, and the connection
 * has a new one. For a command without a status: an -EIO that a controller has answered is not its
 * death. */
bool weft_volume_conn_replace_if_dead(struct weft_volume_conn *conn, int rc);
/* It is closed, and so are its volumes. */
void weft_volume_conn_free(struct weft_volume_conn *conn);

/* --- volume.c --------------------------------------------------------------------------------- */

/* A namespace, on all controllers of the connection that show the same one. */
struct weft_volume {
	struct weft_list link;
	struct weft_volume_conn *conn;
	struct weft_ns *ns;       /* NULL: this controller does not show it */
	struct weft_ns *next_ns;  /* on the next controller */
	unsigned reopen_pass;     /* the last pass that has opened it */
	struct weft_ns_info info; /* as it was at first */
	/* As it was seen last; under conn->lock. */
	struct weft_ns_info last_info;
	atomic_uint nr_running; /* I/Os under way */
	void *user;             /* under conn->lock */

	/* byte_io.c */
	bool can_zero;                       /* there is Write Zeroes */
	struct weft_range_locks write_locks; /* blocks that are being changed */

	/* What flushes have to report of former controllers; changed when the controller is
	 * replaced. */
	unsigned unflushed_losses; /* controllers that died with unflushed writes */
	/* … and no other controller has the namespace: no flush succeeds again. */
	bool unflushed_gone;
	atomic_uint flush_reported; /* the last of them that a flush has failed for */
};

/* By identity (UUID, NGUID, EUI64) and block size. Two namespaces without identity are the same
 * only on one controller, whose library follows them. */
bool weft_ns_info_has_identity(const struct weft_ns_info *info);
bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y);

/* --- byte_io.c: the blocks that a range of bytes touches -----------------------------------------
 *
 *   ┌──────────┬──────────┬──────────┐  blocks
 *   │ head ████│██████████│███   tail│
 *   └──────────┴──────────┴──────────┘
 *   ▲ start                          ▲ start + length */

struct weft_block_span {
	uint64_t start, length; /* multiples of the block size */
	uint32_t head, tail;    /* bytes of the first and last block that the range leaves out */
};

static inline struct weft_block_span weft_block_span_of(uint64_t offset, uint64_t length,
							uint32_t block)
{
	uint64_t mask = block - 1, start = offset & ~mask;
	uint64_t end = (offset + length + mask) & ~mask;

	assert(block && !(block & (block - 1)) && length);
	return (struct weft_block_span){ .start = start,
					 .length = end - start,
					 .head = (uint32_t)(offset - start),
					 .tail = (uint32_t)(end - offset - length) };
}

static inline bool weft_block_span_is_aligned(const struct weft_block_span *span)
{
	return !span->head && !span->tail;
}

#endif
