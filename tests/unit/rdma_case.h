/* rdma_case.h - Weft's target on the fabric, on a reactor of the test's own thread, and hosts to it
 * that are scripted: every capsule is the test's.
 *
 * Nothing happens but in turns, which every wait here makes, a bounded number of them. */
#ifndef WEFT_TESTS_RDMA_CASE_H
#define WEFT_TESTS_RDMA_CASE_H

#include "fabric_end.h"
#include "proto/nvme.h"
#include "proto/rdma.h"
#include "proto/status.h"

#define CASE_NQN "nqn.2026-11.io.weft:unit"

enum {
	CASE_DEPTH_MAX = 64,
	CASE_NS_BYTES = 16 << 20,
	CASE_CAPSULES = 16, /* places in an end's memory that commands are sent from ... */
	CASE_CAPSULE = 8192,
	CASE_DATA = CASE_CAPSULES * CASE_CAPSULE, /* ... and data behind them */
};

/* --- the target ------------------------------------------------------------------------------- */

void case_start(const char *ip);
void case_start_apart(const char *ip); /* the control reactor and queue pairs on two reactors */
void case_start_slow(const char *ip);  /* on storage that answers when told to: fuzz/slow.h */
/* Stops it and looks that nothing is left of it. */
void case_stop(void);
uint16_t case_port(void);
struct weft_target *case_target(void);
struct weft_reactor *case_home(void);
void case_turn(void);
void case_turn_home(void); /* and not the queue pairs' reactor */
void case_turns(unsigned n);
void case_advance(uint64_t ms); /* its clock */
/* Turns until only the listener is left of the target on the fabric, beside what @hosts have. */
void case_settle(void);
void case_listen_again(void); /* takes the listener away and puts it back */
void case_unlisten(void);

/* --- a host ----------------------------------------------------------------------------------- */

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
