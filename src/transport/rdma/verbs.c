/* verbs.c - the real table. Some calls are macros or inline functions: they get a name here. */
#include "transport/rdma/verbs.h"

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	return ibv_query_port(ctx, port, attr);
}

static int query_gid(struct ibv_context *ctx, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry)
{
	return ibv_query_gid_ex(ctx, port, index, entry, 0);
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t size, int access)
{
	return ibv_reg_mr(pd, addr, size, access);
}

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	return ibv_poll_cq(cq, max, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return ibv_req_notify_cq(cq, solicited_only);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_srq_recv(srq, wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_recv(qp, wr, bad);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return ibv_post_send(qp, wr, bad);
}

static void sync_devices(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	if (list)
		rdma_free_devices(list);
}

static const struct rdma_verbs real = {
	.create_event_channel = rdma_create_event_channel,
	.destroy_event_channel = rdma_destroy_event_channel,
	.get_cm_event = rdma_get_cm_event,
	.ack_cm_event = rdma_ack_cm_event,
	.create_id = rdma_create_id,
	.destroy_id = rdma_destroy_id,
	.migrate_id = rdma_migrate_id,
	.set_option = rdma_set_option,
	.bind_addr = rdma_bind_addr,
	.listen = rdma_listen,
	.resolve_addr = rdma_resolve_addr,
	.resolve_route = rdma_resolve_route,
	.connect = rdma_connect,
	.accept = rdma_accept,
	.reject = rdma_reject,
	.disconnect = rdma_disconnect,
	.create_qp = rdma_create_qp,
	.destroy_qp = rdma_destroy_qp,
	.query_device = ibv_query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.alloc_pd = ibv_alloc_pd,
	.dealloc_pd = ibv_dealloc_pd,
	.reg_mr = reg_mr,
	.reg_dmabuf_mr = ibv_reg_dmabuf_mr,
	.dereg_mr = ibv_dereg_mr,
	.create_comp_channel = ibv_create_comp_channel,
	.destroy_comp_channel = ibv_destroy_comp_channel,
	.create_cq = ibv_create_cq,
	.destroy_cq = ibv_destroy_cq,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.get_cq_event = ibv_get_cq_event,
	.ack_cq_events = ibv_ack_cq_events,
	.create_srq = ibv_create_srq,
	.destroy_srq = ibv_destroy_srq,
	.post_srq_recv = post_srq_recv,
	.post_recv = post_recv,
	.post_send = post_send,
	.query_qp = ibv_query_qp,
	.modify_qp = ibv_modify_qp,
	.get_async_event = ibv_get_async_event,
	.ack_async_event = ibv_ack_async_event,
	.sync_devices = sync_devices,
};

const struct rdma_verbs *rdma_verbs = &real;
