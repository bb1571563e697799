/* rdma_session.c - the target on the fabric, and a host to it with two queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rdma_session.h"

struct raw admin, io;
struct rdma_verbs replaced;

int session_start(void)
{
	replaced = fabric_verbs;
	case_start(IP);
	return 0;
}

int set_up(void **state)
{
	fabric_begin();
	return session_start();
}

int tear_down(void **state)
{
	rdma_verbs = &fabric_verbs; /* where a case failed half-way */
	case_stop();
	fabric_end();
	return 0;
}

void session_open(void)
{
	raw_io(&io, IP, raw_admin(&admin, IP), 1, DEPTH);
}

void session_close(void)
{
	raw_close(&io);
	raw_close(&admin);
	case_settle();
}

struct ibv_qp *target_qp(const struct raw *q)
{
	return fabric_peer(q->end.id->qp);
}

union nvme_sqe keep_alive(void)
{
	return (union nvme_sqe){ .common = { .opcode = nvme_admin_keep_alive,
					     .flags = NVME_PSDT_SGL } };
}

void check_alive(struct raw *q)
{
	union nvme_sqe sqe = keep_alive();

	assert_int_equal(raw_run(q, &sqe, 0), 0);
}
