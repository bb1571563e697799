/* manual_end.h - one end of a connection, driven by hand through the fabric's table.
 *
 * Everything fails the test rather than return an error. What must come from elsewhere is waited
 * for by calling fabric_end_turn(), if that is set, a bounded number of times. */
#ifndef WEFT_TESTS_FABRIC_MANUAL_END_H
#define WEFT_TESTS_FABRIC_MANUAL_END_H

#include "fabric/fabric.h"

enum {
	END_MEMORY = 4 << 20,
	END_RECVS = 32,
	END_RECV_SIZE = 16384 + 64,
	END_ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

struct fabric_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listener; /* of an end that accepts */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq; /* both ways */
	struct ibv_pd *pd;
	struct ibv_mr *mr;      /* @memory, all rights */
	struct ibv_mr *recv_mr; /* @recvs */
	char *memory, *recvs;
	struct ibv_qp_init_attr init; /* set before fabric_end_qp() to differ */
	struct rdma_conn_param param; /* likewise, before connect and accept */
	/* The event that was taken last, and its private data. */
	struct rdma_cm_event event;
	char data[256];
};

/* Lets the other side run for a moment. NULL: everything happens by itself. */
extern void (*fabric_end_turn)(void);

/* --- connections ------------------------------------------------------------------------------ */

void fabric_end_open(struct fabric_end *end);
void fabric_end_close(struct fabric_end *end);
void fabric_end_listen(struct fabric_end *end, const char *ip, uint16_t port);
uint16_t fabric_end_port(const struct fabric_end *end);
/* Takes the next event, of whichever kind, acknowledges it and keeps a copy. */
void fabric_end_take(struct fabric_end *end);
void fabric_end_expect(struct fabric_end *end, enum rdma_cm_event_type type);
bool fabric_end_quiet(struct fabric_end *end); /* no event is there */
/* Up to ROUTE_RESOLVED. */
void fabric_end_resolve(struct fabric_end *end, const char *ip, uint16_t port);
/* PD, CQ, QP and memory for end->id. */
void fabric_end_qp(struct fabric_end *end);
void fabric_end_drop_qp(struct fabric_end *end);
/* Asks, with end->param; the answer is the next event. */
void fabric_end_connect(struct fabric_end *end, const void *data, uint8_t size);
/* Takes CONNECT_REQUEST; it is end->id from then on. */
void fabric_end_request(struct fabric_end *end);
void fabric_end_accept(struct fabric_end *end, const void *data, uint8_t size);
/* Both, all the way; @passive listens. */
void fabric_end_pair(struct fabric_end *active, struct fabric_end *passive, const char *ip);

/* --- work ------------------------------------------------------------------------------------- */

/* Receive @index of end->recvs, with wr_id @index. */
void fabric_end_recv(struct fabric_end *end, unsigned index);
char *fabric_end_received(struct fabric_end *end, uint64_t wr_id);
/* One request, signaled, from end->memory + @offset; 0 or what post_send() said. */
int fabric_end_send(struct fabric_end *end, uint64_t wr_id, uint32_t offset, uint32_t len);
int fabric_end_move(struct fabric_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
		    uint32_t offset, uint32_t len, uint64_t remote, uint32_t rkey);
int fabric_end_post(struct fabric_end *end, struct ibv_send_wr *wr);
/* The next completion. */
struct ibv_wc fabric_end_wc(struct fabric_end *end);
/* ... which is of this request and has this status. */
struct ibv_wc fabric_end_done(struct fabric_end *end, uint64_t wr_id, enum ibv_wc_status status);
bool fabric_end_idle(struct fabric_end *end); /* no completion is there */

#endif
