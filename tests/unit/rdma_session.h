/* rdma_session.h - the target on the fabric, and a host to it with an admin queue and one for
 * I/O. */
#ifndef WEFT_TESTS_UNIT_RDMA_SESSION_H
#define WEFT_TESTS_UNIT_RDMA_SESSION_H

#include "peer/raw_rdma_host.h"

#define IP "127.0.0.1"

enum { BLOCK = 512, MDTS = 1 << 20, CAPSULE_DATA = 4096, ADMIN_DEPTH = 32, DEPTH = 16 };

extern struct raw admin, io;
extern struct rdma_verbs replaced; /* the fabric's table, for cases to change */

int set_up(void **state);
int session_start(void); /* the same on a fabric that has begun, and may have been changed */
int tear_down(void **state);

void session_open(void);
void session_close(void); /* in order; nothing is left of them */

/* The target's end. */
struct ibv_qp *target_qp(const struct raw *q);
/* Of an admin queue. */
union nvme_sqe keep_alive(void);
void check_alive(struct raw *q);

#endif
