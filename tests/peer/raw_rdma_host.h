/* raw_rdma_host.h - a host on the fabric that is scripted: every capsule is the test's. */
#ifndef WEFT_TESTS_PEER_RAW_RDMA_HOST_H
#define WEFT_TESTS_PEER_RAW_RDMA_HOST_H

#include "world/rdma_target.h"

struct raw {
	struct fabric_end end;
	uint16_t cid, cntlid;
	unsigned sent;    /* which place is next */
	unsigned answers; /* taken */
	struct ibv_wc wc; /* of the last answer */
};

/* The private data that asks for such a queue. */
struct nvme_rdma_request raw_request(uint16_t qid, uint16_t depth, uint16_t cntlid);
/* Up to a queue pair with receives; then raw_ask() and the answer is the next event. */
void raw_open(struct raw *q, const char *ip);
void raw_ask(struct raw *q, const void *data, uint8_t size);
void raw_close(struct raw *q);
/* All of it: an admin queue with its controller enabled; an I/O queue of it. */
uint16_t raw_admin(struct raw *q, const char *ip); /* its CNTLID */
void raw_io(struct raw *q, const char *ip, uint16_t cntlid, uint16_t qid, uint16_t depth);
void raw_admin_asks(struct raw *q, const char *ip); /* up to its Connect, not yet answered */

/* Sends the command and @extra bytes, that are in place behind it already. */
void raw_send(struct raw *q, union nvme_sqe *sqe, uint32_t extra);
/* Where the next command's extra bytes go. */
char *raw_extra(struct raw *q);
struct nvme_cqe raw_answer(struct raw *q);
bool raw_is_answered(struct raw *q); /* an answer has come; it is gone then */
/* Both; the status. */
uint16_t raw_run(struct raw *q, union nvme_sqe *sqe, uint32_t extra);
/* The connection ends: everything that this end had posted comes back flushed. */
void raw_expect_end(struct raw *q);

char *raw_data(struct raw *q);
union nvme_sqe raw_rw(bool write, uint64_t slba, uint32_t blocks);
/* Data at raw_data() + @offset, by its key. */
void raw_keyed(struct raw *q, union nvme_sqe *sqe, uint32_t offset, uint32_t len);
struct nvme_sgl raw_sgl(uint8_t type, uint64_t addr, uint32_t len);

#endif
