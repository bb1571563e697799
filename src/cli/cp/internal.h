/* internal.h - how a copy works: workers move pieces from one endpoint to the other.
 *
 *             plan: the next piece            (one, behind a lock)
 *                     │ take
 *   worker ── xfer ───┴─▶ get ─▶ put, put … ─▶ done        (a thread each, with its own queues)
 *          ── xfer
 *          ── xfer        get and put are an endpoint's: a file, a stream or a namespace
 *
 * Every piece begins at a multiple of the piece size, counted from the start of the copy. A piece
 * that is known to be a hole may be longer; it is put without being got.
 *
 * Invariant: everything before cp->next was taken; of that, what no xfer holds is done, or
 * cp->broken is not above its offset. */
#ifndef WEFT_CLI_CP_INTERNAL_H
#define WEFT_CLI_CP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/chase.h"
#include "base/err.h"
#include "cli/cp/cp.h"
#include "cli/progress.h"

#define CP_UNKNOWN  UINT64_MAX
#define CP_WORKERS  64
#define CP_HOLE_MAX (UINT64_C(1) << 30)
#define CP_PIECE    (1u << 20)

struct cp;
struct cp_worker;

enum cp_step {
	CP_DONE,
	CP_STARTED, /* weft_cp_xfer_step_done() follows, from poll() of the same worker */
	CP_LATER,   /* it cannot continue now: try again */
};

enum cp_xfer_state { XFER_IDLE, XFER_GET, XFER_PUT };

/* One piece on its way from source to destination. */
struct cp_xfer {
	struct cp_worker *worker;
	enum cp_xfer_state state;
	bool started, hole;
	uint64_t offset, length; /* of the piece */
	uint64_t put_length;     /* the same, with the padding of the last block */
	uint64_t at;             /* how far it was got or put */
	uint64_t run;            /* length of the step that is being put */
	bool run_zero;
	char *buf;           /* of the piece size */
	struct weft_err err; /* why a step failed */
	struct weft_cmd cmd;
	struct iovec iov;
};

struct cp_worker {
	struct cp *cp;
	unsigned index;
	pthread_t thread;
	struct cp_xfer *xfers;
	char *memory;
};

struct cp_endpoint;

struct cp_endpoint_ops {
	/* A thread's own resources. */
	int (*worker_open)(struct cp_endpoint *end, unsigned worker, struct weft_err *err);
	/* Called once before anything is put; @total may be CP_UNKNOWN. */
	int (*prepare)(struct cp_endpoint *end, uint64_t total, struct weft_err *err);

	/* Steps of @xfer: an enum cp_step, or -errno with the sentence in xfer->err. get() fills
	 * xfer->buf; it may shorten xfer->length of the last piece if the size is unknown. put()
	 * and zero() do xfer->run bytes at xfer->at. */
	int (*get)(struct cp_endpoint *end, struct cp_xfer *xfer);
	int (*put)(struct cp_endpoint *end, struct cp_xfer *xfer);
	int (*zero)(struct cp_endpoint *end, struct cp_xfer *xfer);
	/* How many bytes from @offset on are known to be zeroes. Called by one thread at a time,
	 * with growing offsets; may wait for the target. */
	uint64_t (*hole)(struct cp_endpoint *end, uint64_t offset);

	/* A descriptor that the worker waits for, -1: none now; and what to do when it is ready. */
	int (*fd)(struct cp_endpoint *end, unsigned worker, short *events);
	void (*poll)(struct cp_endpoint *end, unsigned worker, int timeout_ms);

	/* On 0 everything that was put is durable. */
	int (*flush)(struct cp_endpoint *end, struct weft_err *err);
	/* Adds the counters of its queues; no worker runs. */
	bool (*counters)(struct cp_endpoint *end,
			 struct weft_queue_stats *sum); /* true: RDMA's, too */
	/* Writes from before the flush may be lost although the flush succeeded. */
	bool (*lost)(struct cp_endpoint *end);
	/* The copy is complete, with @total bytes. */
	int (*finish)(struct cp_endpoint *end, uint64_t total, struct weft_err *err);
	/* Undoes what it can. Says in @text what is left, or leaves that to the caller. */
	void (*abandon)(struct cp_endpoint *end, char *text, size_t size);
	void (*close)(struct cp_endpoint *end);
};

/* An endpoint of the copy. Its body is larger: see endpoint_*.c. */
struct cp_endpoint {
	const struct cp_endpoint_ops *ops;
	struct cp *cp;
	const char *name; /* for people */
	uint64_t base;    /* where the copy begins in it */
	uint64_t size;    /* bytes from there on, or CP_UNKNOWN */
	uint32_t block;   /* what offsets and lengths are multiples of */
	bool can_zero;
	bool is_stream; /* one worker, in order */
	unsigned workers_max;
	/* The option that says where it begins, "--offset". */
	const char *option;
	struct weft_ctrl *ctrl; /* of a namespace */
	bool lost;              /* the loss of its connection was reported */
};

struct cp {
	const struct weft_cp *ask;
	struct cp_endpoint *from, *to;
	uint64_t total; /* or CP_UNKNOWN until a stream has ended */
	uint32_t piece;
	unsigned jobs, depth;
	bool sparse; /* requested, and the destination supports it */
	struct cp_worker *workers;

	pthread_mutex_t taking; /* taken to take pieces, one after the other; before @lock */
	pthread_mutex_t lock;   /* from here … */
	uint64_t next, end;
	uint64_t broken;
	uint64_t *sums; /* CRC64 of every piece, for --verify */
	size_t nsums;
	uint64_t zero_sum; /* of a whole piece of zeroes */
	uint64_t differ, differ_at;
	struct weft_err err;
	bool unknown; /* it is not known whether some piece was written */
	int rc;       /* … to here: the first failure */

	bool verifying;
	atomic_bool stop;
	atomic_uint running; /* workers */
	atomic_ullong done, zeroed;
	bool abandoned; /* some worker did not end */
	bool stuck;     /* nor did the flush */
	int wake;       /* eventfd: a worker ended, or a signal came */
	bool flushed;
	uint64_t verified;
	double start_s,
		seconds; /* when it began; how long it took, with the flush and without --verify */
	struct weft_progress progress;
};

/* endpoint.c, endpoint_file.c, endpoint_stream.c, endpoint_ns.c. @end is NULL when they fail. */
int weft_cp_open_from(struct cp *cp, struct cp_endpoint **end, struct weft_err *err);
int weft_cp_open_to(struct cp *cp, struct cp_endpoint **end, struct weft_err *err);
int weft_cp_file_from(struct cp *cp, const char *path, struct cp_endpoint **end,
		      struct weft_err *err);
int weft_cp_file_to(struct cp *cp, const char *path, const struct weft_chased *at,
		    struct cp_endpoint **end, struct weft_err *err);
int weft_cp_stream(struct cp *cp, int fd, const char *name, struct cp_endpoint **end,
		   struct weft_err *err);
int weft_cp_hex(struct cp *cp, struct cp_endpoint **end, struct weft_err *err);
int weft_cp_ns(struct cp *cp, const char *uri, struct cp_endpoint **end, struct weft_err *err);
/* From now on nothing is said of waiting for @end, if it is a namespace. */
void weft_cp_ns_be_quiet(struct cp_endpoint *end);
/* -E2BIG if the stream @from has more than was taken from it. */
int weft_cp_stream_ended(struct cp_endpoint *from, struct weft_err *err);
/* Whether both are the same namespace, or the same file. */
bool weft_cp_same_ns(const struct cp_endpoint *a, const struct cp_endpoint *b);
bool weft_cp_same_file(const struct cp_endpoint *a, const struct cp_endpoint *b);

/* check.c: whether sizes fit; sets cp->total, cp->piece, cp->jobs, cp->depth. */
int weft_cp_check(struct cp *cp, struct weft_err *err);

/* plan.c */
void weft_cp_plan_range(struct cp *cp, uint64_t end);
bool weft_cp_take_piece(struct cp *cp, struct cp_xfer *xfer);
void weft_cp_set_total(struct cp *cp, uint64_t total);
void weft_cp_piece_failed(struct cp *cp, const struct cp_xfer *xfer, int rc);
/* Everything before this offset is done. */
uint64_t weft_cp_completed_upto(struct cp *cp);
/* Keeps the checksum of a piece, and compares with it. */
void weft_cp_keep_sum(struct cp *cp, const struct cp_xfer *xfer);
void weft_cp_check_sum(struct cp *cp, const struct cp_xfer *xfer);
uint64_t weft_cp_padded(const struct cp *cp, uint64_t length);

/* zero.c: how many bytes from @buf on are all zero, or have something in every @grain. */
size_t weft_zero_run(const char *buf, size_t length, size_t grain, bool *zero);

/* xfer.c */
bool weft_cp_xfer_run(struct cp_xfer *xfer);
void weft_cp_xfer_step_done(struct cp_xfer *xfer, int rc);

/* worker.c */
int weft_cp_workers_open(struct cp *cp, struct weft_err *err);
void weft_cp_workers_free(struct cp *cp);
/* Runs the plan on all workers, and supervises them. */
int weft_cp_run_pass(struct cp *cp, const char *doing, struct weft_err *err);

/* supervise.c: the main thread while workers work: progress, connections, signals. */
void weft_cp_supervise(struct cp *cp);
void weft_cp_print_events(struct cp *cp);

/* signals.c: 0, or the signal that asked us to stop; whether it came twice, or seconds ago. */
int weft_cp_signals_init(int wake);
int weft_cp_signal(void);
bool weft_cp_must_exit(void);

/* report.c: the exit status. */
int weft_cp_succeeded(struct cp *cp);
int weft_cp_failed(struct cp *cp, int rc, struct weft_err *err);

#endif
