/* rdma_host.h - a host's end of an NVMe/RDMA connection: capsules right by default, or any bytes.
 *
 *   program ─▶ rdma_host_command(), rdma_host_raw() ─▶ SEND
 *   RECV, events ─▶ rdma_host_hear(): everything that the target sends is checked
 *   READ, WRITE, SEND of the target ─▶ rdma_host_check(): before it is carried out
 *
 * However wrong a host is: an answer fits a command that it sent, and the target touches what a
 * command without an answer describes, in that command's direction. A host that broke a rule is
 * tainted, and may be left without answers. */
#ifndef WEFT_TESTS_PEER_RDMA_HOST_H
#define WEFT_TESTS_PEER_RDMA_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/faulty_adapter.h"
#include "proto/nvme.h"

enum {
	RHOST_CIDS = 256, /* of commands that are right */
	RHOST_CAPSULES = 32,
	RHOST_CAPSULE = 64 + 8192, /* more than the target takes */
	RHOST_ANSWERS = 64,
	RHOST_ANSWER = 64, /* more than it sends */
	RHOST_DATA = (1 << 20) + 65536,
	RHOST_BLOCKS = 2048,
	RHOST_WINDOWS = 4,
};

/* Memory that a command described. */
struct rdma_host_block {
	uint64_t addr;
	uint32_t len, key;
	uint16_t cid;
	enum nvme_direction direction;
	bool invalidate;
};

struct rdma_host {
	struct rdma_event_channel *channel; /* NULL: closed */
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_mr *windows[RHOST_WINDOWS]; /* the same memory, by keys that are invalidated */
	unsigned nwindows;
	struct rdma_host_memory {
		char capsules[RHOST_CAPSULES][RHOST_CAPSULE];
		char answers[RHOST_ANSWERS][RHOST_ANSWER];
		char data[RHOST_DATA];
	} * memory;

	bool asked, up, ended; /* for a connection; it came; it went, or never came */
	bool tainted, deaf, cut;
	bool connected;
	uint16_t qid, cntlid; /* as Connect said */
	uint32_t sqsize, depth;
	uint8_t cid; /* of the next command */
	unsigned sent, sending, open;
	union nvme_sqe cmds[RHOST_CIDS];
	uint8_t out[65536]; /* commands of that id that have no answer */
	bool doomed[65536]; /* the last of them must not succeed */
	uint16_t status;    /* of the answer that came last */
	struct rdma_host_block blocks[RHOST_BLOCKS];
	unsigned nblocks;
};

/* How a connection is asked for. */
struct rdma_host_request {
	uint16_t qid, hsqsize, cntlid;
	uint8_t reads, rnr_retries;
	/* In the place of what these make: */
	const void *bytes;
	uint8_t len;
};

/* The way to @port is there; false: not now. */
bool rdma_host_open(struct rdma_host *h, uint16_t port);
void rdma_host_ask(struct rdma_host *h, const struct rdma_host_request *request);
void rdma_host_close(struct rdma_host *h);
void rdma_host_cut(struct rdma_host *h);
bool rdma_host_hear(struct rdma_host *h); /* unless it is deaf; true: there was something */

/* The target's end, when it has one. */
struct ibv_qp *rdma_host_peer(const struct rdma_host *h);

/* Gives it a command id; @len bytes of @data are in the capsule behind it. */
void rdma_host_command(struct rdma_host *h, union nvme_sqe *sqe, const void *data, uint32_t len);
void rdma_host_raw(struct rdma_host *h, const void *bytes, uint32_t len);
/* The key of its data; @window: one that the target invalidates. */
uint32_t rdma_host_key(struct rdma_host *h, bool window);

/* The target's next request on this connection. */
void rdma_host_check(const struct rdma_host *h, const struct ibv_send_wr *wr);
/* After everybody had time: who could be answered was. */
void rdma_host_check_settled(const struct rdma_host *h);

#endif
