/* host.h - libweft's host: use a remote NVMe subsystem from a program.
 *
 *   weft_connect() ─▶ weft_ctrl ──weft_ns_open()────▶ weft_ns      what is read and written
 *                         └──────weft_queue_open()──▶ weft_queue   how: one thread's I/O queue
 *
 * A controller has a thread of its own that keeps it alive: keep-alive, asynchronous events,
 * reconnecting. I/O does not go through that thread. A queue belongs to whoever drives it, one
 * thread at a time, without locks; a program opens as many as it has threads. Functions that take
 * a weft_ctrl or a weft_ns may be called from any thread.
 *
 * Every function that can fail returns -errno. Where it takes a weft_err, that gets a sentence with
 * the first cause; it may be NULL. */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_ctrl;
struct weft_ns;
struct weft_queue;

/* --- connecting ------------------------------------------------------------------------------- */

/* Which of several paths a command takes, of those with the best access to its namespace. */
enum weft_policy {
	WEFT_QUEUE_DEPTH, /* "queue-depth": the one with the fewest in flight, of this queue */
	WEFT_ROUND_ROBIN, /* "round-robin": each in turn */
	WEFT_LATENCY, /* "latency": the one that will answer first, from what it has taken lately */
};

/* Which commands are sent again after a loss, although they may have been carried out already. */
enum weft_resend {
	WEFT_RESEND_IDEMPOTENT, /* "idempotent": those for which twice is the same as once */
	WEFT_RESEND_NEVER, /* "never": none that writes; where several hosts write a namespace */
};

/* What the address in a URI belongs to. */
enum weft_paths {
	WEFT_PATHS_GIVEN,    /* "given": a path */
	WEFT_PATHS_DISCOVER, /* "discover": a discovery service, which lists the paths */
};

/* What a connection asks for. Start from weft_options_init(); words behind the URI's "?" win over
 * what is set here (the word is in brackets). */
struct weft_options {
	size_t size;         /* of this struct as the program knows it: weft_options_init() */
	const char *hostnqn; /* [hostnqn] NULL: /etc/nvme/hostnqn, or made from machine and user */
	const char *hostid;  /* [hostid] a UUID; NULL: /etc/nvme/hostid, or as above */
	uint32_t queues;     /* [queues] I/O queues to ask the controller for: 16 */
	uint32_t depth;      /* [depth] commands in flight on one queue: 128 */
	bool hdgst, ddgst;   /* [hdgst, ddgst] CRC32C over headers, over data: off */
	uint32_t keepalive_ms; /* [kato] 0: none; 10 s */
	uint32_t connect_ms;   /* [connect_timeout] for a connection and its first commands: 10 s */
	uint32_t admin_ms;     /* [admin_timeout] for an admin command: 30 s */
	uint32_t io_ms;        /* [io_timeout] for an I/O command, then it is aborted: 30 s */
	uint32_t abort_ms; /* [abort_timeout] for the abort, then the controller is reset: 5 s */
	uint32_t reconnect_ms; /* [reconnect_delay] before the second attempt; doubles: 100 ms */
	uint32_t reconnect_max_ms; /* [reconnect_delay_max] at most: 10 s */
	/* A write that was sent, and lost with its connection, ends no sooner than the lost
	 * controller has had the time to end by itself: two or three times keepalive_ms, and its
	 * quiesce time (see weft_submit). Neither of these two shortens that. */
	uint32_t loss_ms;         /* [loss_timeout] without connection until it is dead: 600 s */
	uint32_t fast_io_fail_ms; /* [fast_io_fail] without a path, then I/O fails: 0, never */
	uint32_t probe_ms;        /* [probe] for a command, then its path is probed: 200 ms */
	enum weft_policy policy;  /* [policy] of the first path: WEFT_QUEUE_DEPTH */
	enum weft_resend resend;  /* [resend] of the first path: WEFT_RESEND_IDEMPOTENT */
	enum weft_paths paths;    /* [paths] WEFT_PATHS_GIVEN */
	/* A discovery, with all services that take part in it. */
	uint32_t discovery_ms;       /* [discovery_timeout] 60 s */
	uint32_t discovery_entries;  /* [discovery_entries] of their logs, 1 KiB each: 16384 */
	uint32_t discovery_services; /* [discovery_services] at most 64: 64 */
	const char *cpus; /* [cpus] the controller's thread is kept on these, such as 0-3,5; NULL:
			     on those of the thread that connects */

	/* RDMA. */
	uint32_t tos; /* [tos] type of service, DSCP << 2 | ECN: 0, as the system has it set up */
	uint32_t retries;      /* [retry] of a packet that nobody acknowledged, 0 to 7: 7 */
	uint32_t rnr_retries;  /* [rnr_retry] of a message that found no receive; 7, for ever: 7 */
	uint32_t ack_timeout;  /* [ack_timeout] 4.096 us * 2^n; the system's: 0 */
	uint32_t inline_bytes; /* [inline] commands up to this size go inline: 64 */
};

/* What the program's struct does not have, since it was compiled with an older libweft, is as by
 * default. */
void weft_options_init_size(struct weft_options *options, size_t size);
static inline void weft_options_init(struct weft_options *options)
{
	weft_options_init_size(options, sizeof(*options));
}

/* nvme+tcp://HOST:PORT/SUBNQN?words; without SUBNQN, the discovery service. The word nsid=N is for
 * the caller: see weft_ctrl_info. @options may be NULL. Returns when the controller is live, or
 * fails at the first attempt.
 *
 * "URI,URI": several paths to one subsystem (multipath), at most 8. I/O goes through any path that
 * leads to its namespace, and fails over to the others when that is lost. One live path is enough;
 * the others are tried again. A word behind one URI applies to all that do not say otherwise.
 *
 * paths=discover: HOST:PORT is a discovery service. The paths are the addresses of SUBNQN in its
 * log and in the logs of its referrals, and they follow these logs: see weft_ctrl_paths(). It fails
 * when no listed address can be reached, or none is listed. */
int weft_connect(const char *uri, const struct weft_options *options, struct weft_ctrl **ctrl,
		 struct weft_err *err);
/* Shuts the controller down and frees it. Its queues and namespaces have been closed. */
void weft_disconnect(struct weft_ctrl *ctrl);

enum weft_state {
	WEFT_CONNECTING,
	WEFT_LIVE,
	WEFT_RESETTING,    /* lost, or reset: the old connection is being closed */
	WEFT_RECONNECTING, /* waits before the next attempt, or is connecting */
	WEFT_DEAD,         /* lost for longer than loss_ms, or refused by the controller: final */
};

/* @why gets the first cause of the last loss, if there was one. */
enum weft_state weft_ctrl_state(struct weft_ctrl *ctrl, struct weft_err *why);
const char *weft_state_text(enum weft_state state);

struct weft_ctrl_info {
	char subnqn[224];
	char hostnqn[224];
	char address[128]; /* nvme+tcp://HOST:PORT, numeric */
	char model[41], serial[21], firmware[9];
	uint32_t version; /* VS: major << 16 | minor << 8 */
	uint16_t cntlid;
	bool discovery;        /* a discovery controller: no namespaces, no I/O queues */
	uint32_t nsid;         /* of the URI's word nsid=; 0: not given */
	uint32_t queues;       /* I/O queues it lets us open */
	uint32_t depth;        /* commands in flight on one of them */
	uint32_t transfer_max; /* bytes that one NVMe command moves; longer I/O is split */
	uint32_t keepalive_ms;
	bool volatile_cache; /* written data needs a flush to be durable */
	bool can_compare, can_zero, can_trim, can_verify, can_copy, can_fuse;
	bool discovering;    /* the first log of a discovery service has not been read yet */
	uint64_t reconnects; /* since weft_connect() */
	uint64_t losses;     /* of a connection, likewise; not each was followed by a reconnect */
};

void weft_ctrl_info(struct weft_ctrl *ctrl, struct weft_ctrl_info *info);

/* The network path of the admin queue's connection, when it was last made. */
struct weft_path {
	char transport[8]; /* "tcp", "rdma" */
	char local[128];   /* the address at our end */

	/* RDMA; "" and 0 otherwise. */
	char device[64]; /* "mlx5_0" */
	uint32_t port;
	char kind[16];     /* "InfiniBand", "RoCE v1", "RoCE v2", "iWARP" */
	char gid[46];      /* of the port, as an IPv6 address */
	uint32_t mtu;      /* bytes of data in one packet on this path */
	uint32_t port_mtu; /* of our port; not @mtu: the ends are set up differently */
};

void weft_ctrl_path(struct weft_ctrl *ctrl, struct weft_path *path);

enum { WEFT_PATHS_MAX = 8 }; /* of one controller */

struct weft_path_info {
	unsigned path;     /* its number, for weft_path_remove() */
	char address[128]; /* nvme+tcp://HOST:PORT, numeric */
	char from[128];    /* the discovery service that lists it; "": it was given */
	enum weft_state state;
	struct weft_err why; /* of its last loss; "": there was none */
	uint16_t cntlid;
	uint32_t queues, depth;
	uint64_t reconnects;
};

/* The paths, in the order of their numbers, at most @max. Returns how many there are.
 *
 * A discovered path comes with its entry in the log, 8 paths at most. When its entry has gone, it
 * is removed as by weft_path_remove() as soon as another listed path is live: while a service is
 * lost, or lists none, the paths stay. */
unsigned weft_ctrl_paths(struct weft_ctrl *ctrl, struct weft_path_info *paths, unsigned max);

/* Adds a path while the others carry I/O: to the same subsystem, in the name of the same host.
 * Returns when it is live: the number that weft_path_remove() takes; or fails at the first attempt.
 * Words that @uri does not have are those of the first path. */
int weft_path_add(struct weft_ctrl *ctrl, const char *uri, struct weft_err *err);
/* Removes a path that was given; not the last one. It takes no new commands; those in flight
 * complete as their queues are polled. */
int weft_path_remove(struct weft_ctrl *ctrl, unsigned path, struct weft_err *err);

/* Resets every path: closes its connection and makes a new one. Commands in flight are retried or
 * fail as after a loss (see weft_submit). Returns at once. */
void weft_ctrl_reset(struct weft_ctrl *ctrl);

/* --- events ----------------------------------------------------------------------------------- */

enum weft_event_kind {
	WEFT_EVENT_STATE,      /* @state, and why */
	WEFT_EVENT_PATH,       /* one of several paths: @state, and why */
	WEFT_EVENT_NAMESPACES, /* some came, went or changed; open weft_ns know of it already */
	WEFT_EVENT_ANA,        /* asymmetric access changed */
	WEFT_EVENT_DISCOVERY,  /* the discovery log changed: weft_discovery_read() again; or, with
				 paths=discover, a discovery service has another @state */
	WEFT_EVENT_ERROR,      /* the controller reports trouble; @result is the completion's DW0 */
	WEFT_EVENT_OTHER,      /* an asynchronous event that Weft does not know; likewise */
	WEFT_EVENT_OVERFLOW,   /* events were dropped: look at everything again */
	WEFT_EVENT_QUEUE,      /* a path has no connection for one of our I/O queues any more */
};

struct weft_event {
	enum weft_event_kind kind;
	enum weft_state state;
	uint32_t result;
	char text[256]; /* for people */
};

/* Readable while there are events. Closed by weft_disconnect(). */
int weft_ctrl_event_fd(struct weft_ctrl *ctrl);
/* The oldest event; false: there is none. Never blocks. */
bool weft_ctrl_next_event(struct weft_ctrl *ctrl, struct weft_event *event);

/* --- namespaces ------------------------------------------------------------------------------- */

/* The ids of the active namespaces, ascending, at most @max: of every live path, each id once.
 * Returns how many there are. Waits until every path has been tried. */
int weft_ns_list(struct weft_ctrl *ctrl, uint32_t *nsids, unsigned max, struct weft_err *err);

/* Holds on to one namespace by its identity (UUID, NGUID, EUI64): when another one takes its nsid,
 * or its block size changes, I/O fails with -ESTALE instead of reaching the wrong data. It need not
 * be on every path: while none shows it, this waits until every path has been tried. */
int weft_ns_open(struct weft_ctrl *ctrl, uint32_t nsid, struct weft_ns **ns, struct weft_err *err);
void weft_ns_close(struct weft_ns *ns); /* no I/O is in flight */

struct weft_ns_info {
	uint32_t nsid;
	uint32_t block_size;
	uint64_t size; /* bytes, as of now */
	uint64_t capacity, used;
	char uuid[37]; /* "": has none */
	uint8_t nguid[16], eui64[8];
	bool read_only;
	uint32_t optimal_write; /* bytes; 0: not told */
	bool shared;            /* several controllers may have it (NMIC) */
	/* A controller with a volatile cache has completed writes that no flush has followed, by
	 * any handle of this namespace and weft_ctrl. */
	bool unflushed;
};

void weft_ns_info(struct weft_ns *ns, struct weft_ns_info *info);

struct weft_ns_extent {
	uint64_t length; /* bytes */
	bool data;       /* false: it is not allocated, and reads as zeroes */
};

/* The extents of @length bytes from @offset on, both multiples of the block size: one follows the
 * other, at most @max. Returns how many, 1 at least; they may end before @length does, and the next
 * call goes on there. All counts as data where the controller does not support Get LBA Status,
 * cannot be asked now, or has deallocated blocks that need not read as zeroes.
 *
 * A block is reported as not allocated only if it was not at some time during the call: blocks that
 * were written before, and not deallocated since, are data. -EINVAL, -ERANGE (beyond the end),
 * -ESTALE, -ENODEV. */
int weft_ns_extents(struct weft_ns *ns, uint64_t offset, uint64_t length,
		    struct weft_ns_extent *extents, unsigned max, struct weft_err *err);

/* Access to a namespace through a path (ANA). */
enum weft_access {
	WEFT_ACCESS_UNKNOWN, /* the path is not live, or was not asked yet */
	WEFT_ACCESS_OPTIMIZED,
	WEFT_ACCESS_NON_OPTIMIZED, /* used where there is no optimized one */
	WEFT_ACCESS_INACCESSIBLE,
	WEFT_ACCESS_LOST,     /* ANA persistent loss */
	WEFT_ACCESS_CHANGING, /* from one state to another */
	WEFT_ACCESS_ABSENT,   /* the path has no namespace with its nsid, or another one */
};

struct weft_ns_path {
	unsigned path;
	enum weft_access access;
	uint32_t ana_group; /* of the namespace there; 0: not known, or no ANA */
};

/* In the order of the paths' numbers, at most @max. Returns how many there are. */
unsigned weft_ns_paths(struct weft_ns *ns, struct weft_ns_path *paths, unsigned max);
const char *weft_access_text(enum weft_access access); /* "non-optimized" */

/* --- I/O -------------------------------------------------------------------------------------- */

/* Its memory is near the CPU of the calling thread: open it on the thread that will drive it. */
int weft_queue_open(struct weft_ctrl *ctrl, struct weft_queue **queue, struct weft_err *err);
/* Nothing is in flight on it. */
void weft_queue_close(struct weft_queue *queue);

enum weft_op_code {
	WEFT_READ,
	WEFT_WRITE,
	WEFT_FLUSH,
	WEFT_COMPARE, /* -EILSEQ: the data differs */
	WEFT_ZERO,    /* write zeroes */
	WEFT_TRIM,    /* deallocate */
	WEFT_VERIFY,
	WEFT_COPY,              /* from @copy_from to @offset, inside the namespace */
	WEFT_COMPARE_AND_WRITE, /* fused; @iov: @length bytes to compare, as many to write */
	WEFT_RAW,               /* @sqe as it is: opcode, nsid, CDW2-3, CDW10-15 */
};

enum {
	WEFT_FUA = 1 << 0,        /* durable when it completes: WRITE, ZERO, COPY */
	WEFT_UNMAP = 1 << 1,      /* ZERO: space may be given back */
	WEFT_IDEMPOTENT = 1 << 2, /* RAW: doing it twice is the same as doing it once */
};

/* One I/O. The caller keeps it, its iovec and its memory in place until done() runs, and may embed
 * it in something larger. Set everything down to @user; start from {} so that the rest is 0. */
struct weft_cmd {
	enum weft_op_code op;
	unsigned flags;
	struct weft_ns *ns;      /* RAW: may be NULL */
	uint64_t offset, length; /* bytes, multiples of the block size */
	uint64_t copy_from;
	/* @length bytes; RAW: what the opcode moves, at most. Bytes that the controller does not
	 * send become zeroes; a device's memory (a dma-buf) keeps the old ones. */
	const struct iovec *iov;
	int iovcnt;
	const void *sqe; /* RAW: 64 bytes */
	/* Runs inside weft_queue_poll(). May submit more, also this one again. */
	void (*done)(struct weft_cmd *cmd);
	void *user;

	/* The result. */
	int rc; /* 0 or -errno */
	/* The NVMe status, when the controller answered: 0x0184 … (SCT << 8 | SC, DNR 0x4000) */
	uint16_t status;
	uint64_t result; /* RAW: the completion's first 8 bytes */
	uint32_t moved;  /* RAW that succeeded: bytes of data. RDMA adapters do not tell: @length */

	uint64_t priv[10]; /* the library's */
};

/* Submits @cmd; it leaves with the next weft_queue_poll(), together with all that was submitted
 * until then. Any number of commands may be submitted: those beyond the queue's depth wait. A
 * command that exceeds the controller's transfer size is split (COMPARE_AND_WRITE and RAW are not).
 * -EINVAL, -ERANGE (beyond the end), -EOPNOTSUPP, -EROFS, -ESTALE: refused, done() will not run.
 *
 * When the connection is lost, commands fail over to another path or wait for the reconnect. Those
 * that the controller may have seen already are sent again if they are idempotent (twice is the
 * same as once): READ, WRITE, FLUSH, COMPARE, ZERO, TRIM, VERIFY, and RAW with WEFT_IDEMPOTENT. A
 * command that writes is neither sent again nor completed before the lost controller cannot carry
 * it out any more. COPY, COMPARE_AND_WRITE and other RAW are not sent again; with WEFT_RESEND_NEVER
 * no command that writes is. A command that was refused because of its path, or because its
 * namespace was not ready, was not carried out: all are sent again but RAW without that flag. A
 * program must not have two writes to the same blocks in flight at once; NVMe does not order them
 * either.
 *
 * When a command ends because of a lost connection, rc tells what is known:
 *   -ENOTCONN    it was not carried out, and will not be
 *   -ECONNRESET  it was sent, and whether it was carried out is not known. It will not be carried
 *                out later, unless the controllers that were asked to end the lost one never
 *                confirmed it. A command that writes and was sent before ends with this, whatever
 *                its next try failed with */
int weft_submit(struct weft_queue *queue, struct weft_cmd *cmd);

/* Sends what was submitted, reaps completions, runs done(). Waits at most @timeout_ms for the first
 * completion (0: not at all, -1: as long as it takes). Returns how many commands completed. Not
 * from inside done(). */
int weft_queue_poll(struct weft_queue *queue, int timeout_ms);
/* Readable when weft_queue_poll() has something to do; call it with 0 after submitting, and then
 * whenever this is readable. */
int weft_queue_fd(struct weft_queue *queue);
/* Commands submitted and not completed. */
unsigned weft_queue_pending(const struct weft_queue *queue);

/* Since the queue was opened, over all its connections. */
struct weft_queue_stats {
	uint64_t posted;       /* messages given to the adapter, or PDUs to the socket */
	uint64_t completed;    /* commands answered */
	uint64_t copied_bytes; /* of data, copied between the wire and the caller's memory */

	/* RDMA. */
	uint64_t flushed;       /* work requests that a broken connection gave back */
	uint64_t retried;       /* connections that broke because nothing was acknowledged */
	uint64_t rnr;           /* … because the other end had no receive */
	uint64_t key_hits;      /* data in memory that was registered already */
	uint64_t registrations; /* of memory with the adapter */
};

void weft_queue_stats(const struct weft_queue *queue, struct weft_queue_stats *stats);

enum { WEFT_STALL_LENGTHS = 32 };

/* A stall (failover time) begins when commands are lost with their connection, are refused because
 * of their path, find no usable path, or wait before a retry; it ends when the last of them is
 * completed. */
struct weft_stalls {
	uint64_t switches; /* commands that were sent again, on another path */
	uint64_t stalls;
	uint64_t longest_ns, total_ns;
	uint64_t by_length[WEFT_STALL_LENGTHS]; /* [n]: shorter than 2^n us, and not in [n - 1] */
};

/* Since the queue was opened; without a stall that has not ended. */
void weft_queue_stalls(const struct weft_queue *queue, struct weft_stalls *stalls);

/* A sentence about @cmd->rc: "Write of 4096 bytes at 0: LBA Out of Range (NVMe status 0x80)". */
void weft_cmd_text(const struct weft_cmd *cmd, struct weft_err *text);

/* Submits @cmd and drives the queue until it is done; @done and @user are not used.
 * Returns @cmd->rc, or why it was refused. */
int weft_run(struct weft_queue *queue, struct weft_cmd *cmd, struct weft_err *err);

/* The same in one line. */
int weft_read(struct weft_queue *queue, struct weft_ns *ns, void *buf, size_t length,
	      uint64_t offset, struct weft_err *err);
int weft_write(struct weft_queue *queue, struct weft_ns *ns, const void *buf, size_t length,
	       uint64_t offset, unsigned flags, struct weft_err *err);
int weft_flush(struct weft_queue *queue, struct weft_ns *ns, struct weft_err *err);
int weft_zero(struct weft_queue *queue, struct weft_ns *ns, uint64_t length, uint64_t offset,
	      unsigned flags, struct weft_err *err);
int weft_trim(struct weft_queue *queue, struct weft_ns *ns, uint64_t length, uint64_t offset,
	      struct weft_err *err);

/* --- admin commands --------------------------------------------------------------------------- */

/* Any admin command, synchronously, from any thread: @sqe as for WEFT_RAW. Of several paths it takes
 * any, or, about a namespace that the program has open, the best one to that. Moves @length bytes to
 * or from @buf as its opcode says. @result (may be NULL) gets the completion's first 8 bytes. 0,
 * -errno, or the positive NVMe status with which the controller refused it. */
int weft_admin(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
	       uint64_t *result, struct weft_err *err);
/* The same, and *@moved gets how many bytes of @length were moved when it succeeds. Bytes that did
 * not come are zeroes. RDMA adapters do not tell: there it is @length. */
int weft_admin_moved(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
		     uint64_t *result, uint32_t *moved, struct weft_err *err);
/* Identify and Get Log Page; all data has come. @buf of weft_identify() has 4096 bytes. */
int weft_identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *buf,
		  struct weft_err *err);
int weft_log_page(struct weft_ctrl *ctrl, uint8_t lid, uint32_t nsid, uint64_t offset, void *buf,
		  uint32_t length, struct weft_err *err);

/* "LBA Out of Range"; a constant, never NULL. */
const char *weft_status_text(uint16_t status);

/* --- discovery -------------------------------------------------------------------------------- */

struct weft_discovered {
	char transport[8]; /* "tcp", "rdma", "fc", "loop", or a number */
	char address[257]; /* TRADDR */
	char service[33];  /* TRSVCID */
	char subnqn[257];
	char uri[512]; /* to weft_connect() with; "": there is no such transport, or address */
	uint16_t portid, cntlid;
	uint8_t subtype; /* 1: referral, 2: NVM subsystem, 3: this discovery service */
	bool secure;     /* it requires a secure channel */
	char from[512];  /* the discovery service that lists it */
};

struct weft_discovery {
	uint64_t generation; /* of the service asked first */
	unsigned count;
	struct weft_discovered *entries;
	unsigned unreachable; /* referrals that could not be followed; @why has the first cause */
	struct weft_err why;
	unsigned skipped; /* referrals that were not tried; likewise */
	struct weft_err skipped_why;
	uint32_t left_ms; /* of discovery_timeout */
};

/* Reads the log of a connected discovery controller, in parts; again if it changes meanwhile. */
int weft_discovery_read(struct weft_ctrl *ctrl, struct weft_discovery *log, struct weft_err *err);
/* Connects to @uri, reads the log, follows referrals (8 deep; see discovery_ms) and disconnects. */
int weft_discover(const char *uri, const struct weft_options *options, struct weft_discovery *log,
		  struct weft_err *err);
void weft_discovery_free(struct weft_discovery *log); /* its entries */

#ifdef __cplusplus
}
#endif

#endif
