/* test_fabric.c - the fabric itself: that it does what adapters do, and refuses what they refuse.
 *
 * What is proven here and in test_fabric_*.c is what the tests of the target and of the host stand
 * on. */
#include "fabric_case.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- two threads ------------------------------------------------------------------------------ */

enum { ECHOES = 500 };

static void make_blocking(struct fabric_end *end)
{
	assert_return_code(fcntl(end->channel->fd, F_SETFL, 0), errno);
}

/* The next completion, slept for. */
static struct ibv_wc sleep_for(struct fabric_end *end)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		if (v->poll_cq(end->cq, 1, &wc) == 1)
			return wc;
		assert_int_equal(v->req_notify_cq(end->cq, 0), 0);
		if (v->poll_cq(end->cq, 1, &wc) == 1)
			return wc;
		assert_int_equal(v->get_cq_event(end->comp, &cq, &context), 0);
		v->ack_cq_events(cq, 1);
	}
}

static void echo(struct fabric_end *end, bool first)
{
	for (unsigned sent = 0, got = 0; got < ECHOES;) {
		struct ibv_wc wc;

		if (first && sent == got) {
			memcpy(end->memory, &sent, sizeof(sent));
			assert_int_equal(fabric_end_send(end, 1000, 0, sizeof(sent)), 0);
			sent++;
		}
		wc = sleep_for(end);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		assert_memory_equal(fabric_end_received(end, wc.wr_id), &got, sizeof(got));
		fabric_end_recv(end, (unsigned)wc.wr_id);
		if (!first) {
			memcpy(end->memory, &got, sizeof(got));
			assert_int_equal(fabric_end_send(end, 1000, 0, sizeof(got)), 0);
		}
		got++;
	}
}

static void *serve(void *arg)
{
	fabric_end_request(&b);
	fabric_end_qp(&b);
	assert_return_code(fcntl(b.comp->fd, F_SETFL, 0), errno);
	fabric_end_recv(&b, 0);
	fabric_end_accept(&b, NULL, 0);
	fabric_end_expect(&b, RDMA_CM_EVENT_ESTABLISHED);
	echo(&b, false);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread;

	make_blocking(&a);
	make_blocking(&b);
	fabric_end_listen(&b, "127.0.0.1", 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	assert_return_code(fcntl(a.comp->fd, F_SETFL, 0), errno);
	fabric_end_recv(&a, 0);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_expect(&a, RDMA_CM_EVENT_ESTABLISHED);
	echo(&a, true);
	pthread_join(thread, NULL);
	assert_int_equal(fabric_counts().recvs, 2 * ECHOES);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void test_dmabuf(void **state)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	struct ibv_mr *mr;
	char byte;

	assert_return_code(ftruncate(fd, 8192), errno);
	fabric_end_pair(&a, &b, "127.0.0.1");
	mr = v->reg_dmabuf_mr(b.pd, 4096, 4096, 0x100000, fd, END_ALL_RIGHTS);
	assert_non_null(mr);
	a.memory[0] = 'g';
	fabric_end_move(&a, IBV_WR_RDMA_WRITE, 1, 0, 1, 0x100007, mr->rkey);
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pread(fd, &byte, 1, 4096 + 7), 1);
	assert_int_equal(byte, 'g');
	v->dereg_mr(mr);
	fabric_device("fake0")->dmabuf = false;
	assert_null(v->reg_dmabuf_mr(b.pd, 0, 4096, 0, fd, END_ALL_RIGHTS));
	assert_int_equal(errno, EOPNOTSUPP);
	close(fd);
}

static void test_queries(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_gid_entry gid;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	uint8_t tos = 0x68;

	fabric_device("fake0")->port.active_mtu = IBV_MTU_4096;
	fabric_end_listen(&b, "127.0.0.1", 0);
	assert_return_code(v->set_option(b.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1),
			   errno);
	a.param.responder_resources = 1;
	a.param.initiator_depth = 2;
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_request(&b);
	/* What one asks to start is what the other must answer. */
	assert_int_equal(b.event.param.conn.responder_resources, 2);
	assert_int_equal(b.event.param.conn.initiator_depth, 1);
	assert_int_equal(b.event.param.conn.qp_num, a.id->qp->qp_num);
	fabric_end_qp(&b);
	fabric_end_accept(&b, NULL, 0);
	assert_int_equal(v->query_qp(b.id->qp, &attr, IBV_QP_PATH_MTU, &init), 0);
	assert_int_equal(attr.path_mtu, IBV_MTU_4096);
	assert_int_equal(attr.dest_qp_num, a.id->qp->qp_num);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 0x68);
	assert_int_equal(v->query_port(b.id->verbs, 1, &port), 0);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_equal(v->query_gid(b.id->verbs, 1, attr.ah_attr.grh.sgid_index, &gid), 0);
	assert_int_equal(gid.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_memory_equal(gid.gid.raw, b.id->route.addr.addr.ibaddr.sgid.raw, 16);
	assert_int_equal(v->query_gid(b.id->verbs, 1, 99, &gid), EINVAL);
}

static void test_left(void **state)
{
	struct ibv_pd *pd;

	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_string_equal(fabric_left(), " 3 id(s) 2 event channel(s) 2 PD(s) 4 MR(s) 2 CQ(s)"
					   " 2 completion channel(s) 2 QP(s)");
	tear_down(state);
	fabric_begin();
	assert_string_equal(fabric_left(), "");
	pd = v->alloc_pd(fabric_context("fake0"));
	assert_string_equal(fabric_left(), " 1 PD(s)");
	v->dealloc_pd(pd);
	fabric_end();
	set_up(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_threads),
		CASE(test_dmabuf),
		CASE(test_queries),
		CASE(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
