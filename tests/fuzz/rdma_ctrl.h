/* rdma_ctrl.h - a controller's end of an RDMA link: right by default, wrong where a program says
 * so.
 *
 *   request ─▶ rdma_ctrl_accept(), rdma_ctrl_reject()
 *   capsules ─▶ rdma_ctrl_hear(): everything that the host sends is checked, and kept by order
 *   program ─▶ rdma_ctrl_read(), rdma_ctrl_write(), rdma_ctrl_resp() ─▶ READ, WRITE, SEND
 *
 * A peer that broke a rule, or whose adapter did, is tainted: the host may end the connection. To
 * one that is not tainted every order comes as it was placed, and goes as it was answered. */
#ifndef WEFT_TESTS_FUZZ_RDMA_CTRL_H
#define WEFT_TESTS_FUZZ_RDMA_CTRL_H

#include "fabric/faulty_adapter.h"
#include "order.h"

enum { RPEER_PORT = 4420, RPEER_BLOCKS = 16 };

struct rdma_peer {
	bool open;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint32_t capsule; /* data that fits a capsule */
	uint32_t blocks;  /* descriptors of one command that it takes */
	uint32_t depth;   /* commands that the host may send */
	bool tainted;
	bool asked, answered; /* for a connection; accepted or rejected */
	bool up, ended;       /* ESTABLISHED came; it ended the connection */
	unsigned busy;        /* requests posted and not completed */
};

extern struct rdma_peer rdma_peer;

/* Listens, unless @nobody is to be there. */
void rdma_ctrl_open(bool nobody);
void rdma_ctrl_close(void);
bool rdma_ctrl_hear(void);         /* true: there was something */
struct ibv_qp *rdma_ctrl_qp(void); /* NULL: none */

/* The request, once; @bytes in the place of what is right, unless NULL. */
void rdma_ctrl_accept(const void *bytes, uint8_t len);
void rdma_ctrl_reject(const void *bytes, uint8_t len);
void rdma_ctrl_disconnect(void);

/* All of @o's data, or the first @len bytes. */
void rdma_ctrl_read(struct order *o, uint32_t len);
void rdma_ctrl_write(struct order *o, uint32_t len);
/* @key: invalidated with it, unless 0. */
/* False: it has no connection yet, or none any more, and nothing was sent. */
bool rdma_ctrl_resp(const struct nvme_cqe *cqe, uint32_t key);
void rdma_ctrl_raw(const void *bytes, uint32_t len);
/* The key of the order's first block; 0: it has none. */
uint32_t rdma_ctrl_key(const struct order *o);

#endif
