/* manual_end.c - one end by hand: its connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manual_end.h"

enum { TURNS_MAX = 20000, RESOLVE_MS = 1000 };

void (*fabric_end_turn)(void);

static const struct rdma_verbs *const v = &fabric_verbs;

static void address(const char *ip, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *in4 = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (strchr(ip, ':')) {
		*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
		assert_int_equal(inet_pton(AF_INET6, ip, &in6->sin6_addr), 1);
		return;
	}
	*in4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	assert_int_equal(inet_pton(AF_INET, ip, &in4->sin_addr), 1);
}

void fabric_end_open(struct fabric_end *end)
{
	memset(end, 0, sizeof(*end));
	end->channel = v->create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(fcntl(end->channel->fd, F_SETFL, O_NONBLOCK), errno);
	end->memory = calloc(1, END_MEMORY);
	end->recvs = calloc(END_RECVS, END_RECV_SIZE);
	end->param = (struct rdma_conn_param){ .responder_resources = 4,
					       .initiator_depth = 4,
					       .retry_count = 7,
					       .rnr_retry_count = 7 };
	end->init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC,
					       .cap = {
						       .max_send_wr = 64,
						       .max_recv_wr = 64,
						       .max_send_sge = 2,
						       .max_recv_sge = 2,
					       } };
}

void fabric_end_close(struct fabric_end *end)
{
	if (end->id && end->id->qp)
		fabric_end_drop_qp(end);
	if (end->id)
		assert_return_code(v->destroy_id(end->id), errno);
	if (end->listener)
		assert_return_code(v->destroy_id(end->listener), errno);
	v->destroy_event_channel(end->channel);
	free(end->memory);
	free(end->recvs);
	memset(end, 0, sizeof(*end));
}

void fabric_end_listen(struct fabric_end *end, const char *ip, uint16_t port)
{
	struct sockaddr_storage addr;

	address(ip, port, &addr);
	assert_return_code(v->create_id(end->channel, &end->listener, end, RDMA_PS_TCP), errno);
	assert_return_code(v->bind_addr(end->listener, (struct sockaddr *)&addr), errno);
	assert_return_code(v->listen(end->listener, 8), errno);
}

uint16_t fabric_end_port(const struct fabric_end *end)
{
	return ntohs(rdma_get_src_port(end->listener));
}

/* --- events ----------------------------------------------------------------------------------- */

static bool try_take(struct fabric_end *end)
{
	struct rdma_cm_event *event;

	if (v->get_cm_event(end->channel, &event) < 0) {
		assert_int_equal(errno, EAGAIN);
		return false;
	}
	end->event = *event;
	if (event->param.conn.private_data)
		memcpy(end->data, event->param.conn.private_data,
		       event->param.conn.private_data_len);
	end->event.param.conn.private_data = end->data;
	assert_return_code(v->ack_cm_event(event), errno);
	return true;
}

void fabric_end_take(struct fabric_end *end)
{
	for (int i = 0; !try_take(end); i++) {
		if (!fabric_end_turn || i == TURNS_MAX)
			fail_msg("no CM event came");
		fabric_end_turn();
	}
}

void fabric_end_expect(struct fabric_end *end, enum rdma_cm_event_type type)
{
	fabric_end_take(end);
	assert_string_equal(rdma_event_str(end->event.event), rdma_event_str(type));
}

bool fabric_end_quiet(struct fabric_end *end)
{
	return !try_take(end);
}

/* --- connections ------------------------------------------------------------------------------ */

void fabric_end_resolve(struct fabric_end *end, const char *ip, uint16_t port)
{
	struct sockaddr_storage addr;

	address(ip, port, &addr);
	assert_return_code(v->create_id(end->channel, &end->id, end, RDMA_PS_TCP), errno);
	assert_return_code(v->resolve_addr(end->id, NULL, (struct sockaddr *)&addr, RESOLVE_MS),
			   errno);
	fabric_end_expect(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(v->resolve_route(end->id, RESOLVE_MS), errno);
	fabric_end_expect(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void fabric_end_qp(struct fabric_end *end)
{
	struct ibv_context *ctx = end->id->verbs;
	int cqe = (int)(end->init.cap.max_send_wr + END_RECVS + end->init.cap.max_recv_wr);

	end->pd = v->alloc_pd(ctx);
	end->comp = v->create_comp_channel(ctx);
	assert_return_code(fcntl(end->comp->fd, F_SETFL, O_NONBLOCK), errno);
	end->cq = v->create_cq(ctx, cqe, end, end->comp, 0);
	end->mr = v->reg_mr(end->pd, end->memory, END_MEMORY, END_ALL_RIGHTS);
	end->recv_mr = v->reg_mr(end->pd, end->recvs, END_RECVS * END_RECV_SIZE,
				 IBV_ACCESS_LOCAL_WRITE);
	assert_true(end->pd && end->cq && end->mr && end->recv_mr);
	end->init.send_cq = end->init.send_cq ? end->init.send_cq : end->cq;
	end->init.recv_cq = end->init.recv_cq ? end->init.recv_cq : end->cq;
	assert_return_code(v->create_qp(end->id, end->pd, &end->init), errno);
}

void fabric_end_drop_qp(struct fabric_end *end)
{
	v->destroy_qp(end->id);
	assert_int_equal(v->destroy_cq(end->cq), 0);
	assert_int_equal(v->destroy_comp_channel(end->comp), 0);
	assert_int_equal(v->dereg_mr(end->mr), 0);
	assert_int_equal(v->dereg_mr(end->recv_mr), 0);
	assert_int_equal(v->dealloc_pd(end->pd), 0);
	end->init.send_cq = end->init.recv_cq = NULL;
}

void fabric_end_connect(struct fabric_end *end, const void *data, uint8_t size)
{
	end->param.private_data = data;
	end->param.private_data_len = size;
	assert_return_code(v->connect(end->id, &end->param), errno);
}

void fabric_end_request(struct fabric_end *end)
{
	fabric_end_expect(end, RDMA_CM_EVENT_CONNECT_REQUEST);
	end->id = end->event.id;
}

void fabric_end_accept(struct fabric_end *end, const void *data, uint8_t size)
{
	end->param.private_data = data;
	end->param.private_data_len = size;
	assert_return_code(v->accept(end->id, &end->param), errno);
}

void fabric_end_pair(struct fabric_end *active, struct fabric_end *passive, const char *ip)
{
	fabric_end_listen(passive, ip, 0);
	fabric_end_resolve(active, ip, fabric_end_port(passive));
	fabric_end_qp(active);
	fabric_end_connect(active, "hello", 5);
	fabric_end_request(passive);
	fabric_end_qp(passive);
	fabric_end_accept(passive, "welcome", 7);
	fabric_end_expect(active, RDMA_CM_EVENT_ESTABLISHED);
	fabric_end_expect(passive, RDMA_CM_EVENT_ESTABLISHED);
}
