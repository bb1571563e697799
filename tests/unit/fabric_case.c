/* fabric_case.c - two ends of a fabric. */
#include "fabric_case.h"

#include <poll.h>
#include <stdio.h>

const struct rdma_verbs *const v = &fabric_verbs;
struct fabric_end a, b; /* @a connects, @b accepts */
unsigned misuses;
char misuse[200];

void on_misuse(const char *what)
{
	misuses++;
	snprintf(misuse, sizeof(misuse), "%s", what);
}

int set_up(void **state)
{
	fabric_begin();
	misuses = 0;
	fabric_end_open(&a);
	fabric_end_open(&b);
	return 0;
}

int tear_down(void **state)
{
	fabric_end_close(&a);
	fabric_end_close(&b);
	fabric_end();
	return 0;
}

bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

enum ibv_qp_state state_of(const struct fabric_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(v->query_qp(end->id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}
