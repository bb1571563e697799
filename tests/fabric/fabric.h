/* fabric.h - an RDMA fabric inside one process, behind the table in transport/rdma/verbs.h.
 *
 *   fabric_begin(); rdma_verbs = &fabric_verbs;     ... both ends, any threads ...     fabric_end();
 *
 * Two adapters: "fake0" is like RoCE v2, "iwarp0" like iWARP. What libibverbs, librdmacm and the
 * kernel's CM do is done alike, also where it surprises:
 *
 *  - An id that connects has its QP in INIT until it takes its ESTABLISHED from the channel; only
 *    then does the accepting id get its own. The accepting QP may send and receive from accept() on.
 *  - An accept() that is made to fail leaves its QP in ERR.
 *  - disconnect() puts one's own QP into ERR. On fake0 the peer's QP stays as it is until the peer
 *    calls disconnect() or modify_qp(); on iwarp0 it goes to ERR as well. DISCONNECTED comes to both;
 *    TIMEWAIT_EXIT follows on fake0.
 *  - CONNECT_REQUEST counts as an event of the listener, not of the new id. Events that an id has
 *    and that nobody took go with it; those taken and not acknowledged are a misuse (the real
 *    destroy_id() and migrate_id() never return then). So are CQ events.
 *  - Private data that comes is padded with zeros on fake0: to 56 bytes in CONNECT_REQUEST, 196 in
 *    ESTABLISHED, 148 in REJECTED; it is exact on iwarp0.
 *  - REJECTED has status 28 where the peer rejected, 8 where nobody listens; on iwarp0 -ECONNRESET and
 *    -ECONNREFUSED.
 *  - A send slot is free again when a completion of it, or of a later one, was polled.
 *  - In a completion with an error only wr_id, status and qp_num mean anything; the rest is rubbish.
 *  - An SRQ's receives are not flushed with a QP, but for those that it had taken from there; an async
 *    LAST_WQE_REACHED tells when they are back. Those not back by then are lost with the QP.
 *  - destroy_qp() waits for whoever has an async event of the QP in hand.
 *  - destroy_qp() takes the QP's completions out of its CQs on fake0, and leaves them on iwarp0.
 *
 * All calls below may be made at any time, from any thread. */
#ifndef WEFT_TESTS_FABRIC_FABRIC_H
#define WEFT_TESTS_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/rdma/verbs.h"

extern const struct rdma_verbs fabric_verbs;

void fabric_begin(void); /* everything below is as new */
void fabric_end(void);   /* fails the test if something is left */

/* What only a bug does (overrun of a CQ, destroy_id() with an event not acknowledged, an unknown
 * object ...). NULL: print it and abort(). */
void fabric_on_misuse(void (*hook)(const char *what));

/* --- what is there ---------------------------------------------------------------------------- */

struct fabric_counts {
	/* Alive now. Ids include those whose CONNECT_REQUEST nobody has taken yet. */
	unsigned ids, channels, pds, mrs, cqs, comp_channels, srqs, qps;
	/* Since fabric_begin(). */
	uint64_t registrations;
	uint64_t posts, srq_posts, recv_posts; /* calls of post_send, ... */
	uint64_t sends, inlined, invalidations, reads, writes,
		recvs;    /* work requests carried out */
	uint64_t bytes;   /* of those */
	uint64_t copies;  /* segments that they took */
	uint64_t rnr;     /* times that a send found no receive */
	uint64_t flushed; /* completions with WR_FLUSH_ERR */
	uint64_t misuses;
};

struct fabric_counts fabric_counts(void);
/* What is alive, in words; "" if nothing is. */
const char *fabric_left(void);

/* The other end, or NULL. */
struct ibv_qp *fabric_peer(struct ibv_qp *qp);
struct rdma_cm_id *fabric_peer_id(struct rdma_cm_id *id);
struct rdma_cm_id *fabric_id_of(struct ibv_qp *qp);
/* The live ones, oldest first; NULL: there are not that many. */
struct ibv_qp *fabric_qp(unsigned index);
struct rdma_cm_id *fabric_id(unsigned index);
/* Receives that lie in wait at @qp, or at its SRQ. */
unsigned fabric_receives(struct ibv_qp *qp);

/* In between nothing changes but by the caller, so that what it found is still there. */
void fabric_freeze(void);
void fabric_thaw(void);

/* --- adapters and addresses ------------------------------------------------------------------- */

struct fabric_device {
	struct ibv_device_attr attr; /* max_qp_wr, max_sge, max_sge_rd, max_srq, max_srq_wr ... */
	struct ibv_port_attr port;   /* active_mtu ... */
	uint32_t max_inline;
	bool dmabuf;      /* reg_dmabuf_mr() works (on whatever can be mapped); else EOPNOTSUPP */
	bool invalidates; /* SEND_WITH_INV that comes is understood; else it is a remote access error */
	bool refuses_inv; /* post_send() does not know SEND_WITH_INV, whatever @attr says */
	bool stale_cqes;  /* completions of a destroyed QP stay */
	bool never_last;  /* LAST_WQE_REACHED is not said */
};

/* To be changed before the adapter is used. */
struct fabric_device *fabric_device(const char *name);
struct ibv_context *fabric_context(const char *name);
/* From now on @ip (no port) is @device's; NULL: nobody's. At first 127.0.0.0/8 and ::1 are
 * fake0's. */
void fabric_map(const char *ip, const char *device);
/* Whose loopback is from the next fabric_begin() on. */
void fabric_loopback(const char *device);
/* From now on the way to @ip ends in @event: ADDR_ERROR, ROUTE_ERROR, UNREACHABLE, CONNECT_ERROR,
 * or REJECTED, with @status. RDMA_CM_EVENT_ADDR_RESOLVED: all is well again. */
void fabric_path(const char *ip, enum rdma_cm_event_type event, int status);
/* DEVICE_REMOVAL for every id on it, an async DEVICE_FATAL; what is there can only be destroyed. */
void fabric_remove(const char *device);
/* It is back, with a new context; what was the old one's works no more. */
void fabric_restore(const char *device);
void fabric_async(const char *device, enum ibv_event_type type);
/* Of @qp, or of its CQ or SRQ if that is what such an event is about. Its state is as it was. */
void fabric_async_of(struct ibv_qp *qp, enum ibv_event_type type);

/* --- who decides what happens next ------------------------------------------------------------ */

/* At first work is done as it is posted. Manual: only by fabric_step() and fabric_run(). */
void fabric_manual(bool manual);
/* Carries out the oldest send request of @qp, or of any QP for NULL. false: there is none, or it
 * cannot go on (RNR, cut, its peer is not ready). Tries that end in RNR count against rnr_retry. */
bool fabric_step(struct ibv_qp *qp);
/* The first @bytes of the READ or WRITE that is next on @qp; it stays next. */
bool fabric_part(struct ibv_qp *qp, uint32_t bytes);
/* Steps until nothing moves. */
void fabric_run(void);
/* Send requests of @qp that wait to be carried out, and the next of them (its SGEs too are a copy;
 * valid until it is carried out). */
unsigned fabric_pending(struct ibv_qp *qp);
const struct ibv_send_wr *fabric_next(struct ibv_qp *qp);
/* In automatic mode, @qp (NULL: every QP there is, or will be) stops at a request with one of these
 * opcodes, 1u << IBV_WR_RDMA_READ ...; 0 lets go. fabric_step() overrides. */
void fabric_hold(struct ibv_qp *qp, unsigned opcodes);
/* @qp takes up to @count receives from its SRQ before there is anything to receive. In ERR it keeps
 * them, and LAST_WQE_REACHED, until it hands them back. */
void fabric_take_ahead(struct ibv_qp *qp, unsigned count);
void fabric_hand_back(struct ibv_qp *qp);
/* Nothing gets through between @qp and its peer any more, and neither is told. */
void fabric_cut(struct ibv_qp *qp);
/* The oldest send request of @qp has been retried enough: RETRY_EXC_ERR. false: it has none. */
bool fabric_time_out(struct ibv_qp *qp);

/* --- faults ----------------------------------------------------------------------------------- */

/* Of the calls of the named entry of struct rdma_verbs, after @skip more, @count fail with @error
 * (poll_cq: returns -1; void ones cannot fail). The entry "connect" and so on. */
void fabric_fail(const char *entry, unsigned skip, unsigned count, int error);
void fabric_fail_no_more(void);
/* The next completion of @qp's send requests (@receive: of its receives) has this status instead
 * of success; then @qp is in ERR. What the request should have done is not done. */
void fabric_fail_next(struct ibv_qp *qp, bool receive, enum ibv_wc_status status);
/* A CM event for @id, behind those that its channel holds. */
void fabric_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status);
void fabric_event_data(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
		       const void *data, uint8_t size);
/* Events of this kind for ids that were accepted (@passive) or that connect are kept back from now
 * on; fabric_deliver() hands out those kept, in order, and keeps no more. */
void fabric_delay(enum rdma_cm_event_type event, bool passive);
void fabric_deliver(void);

#endif
