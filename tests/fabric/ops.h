/* ops.h - the entries of the table, each declared with the type that the table gives it. */
#ifndef WEFT_TESTS_FABRIC_OPS_H
#define WEFT_TESTS_FABRIC_OPS_H

#include "transport/rdma/verbs.h"

/* clang-format off */
#define FABRIC_ENTRIES(X)                                                                    \
	X(create_event_channel) X(destroy_event_channel) X(get_cm_event) X(ack_cm_event)     \
	X(create_id) X(destroy_id) X(migrate_id) X(set_option) X(bind_addr) X(listen)        \
	X(resolve_addr) X(resolve_route) X(connect) X(accept) X(reject) X(disconnect)        \
	X(create_qp) X(destroy_qp)                                                           \
	X(query_device) X(query_port) X(query_gid)                                           \
	X(alloc_pd) X(dealloc_pd) X(reg_mr) X(reg_dmabuf_mr) X(dereg_mr)                     \
	X(create_comp_channel) X(destroy_comp_channel) X(create_cq) X(destroy_cq) X(poll_cq) \
	X(req_notify_cq) X(get_cq_event) X(ack_cq_events)                                    \
	X(create_srq) X(destroy_srq) X(post_srq_recv) X(post_recv) X(post_send)              \
	X(query_qp) X(modify_qp)                                                             \
	X(get_async_event) X(ack_async_event) X(sync_devices)
/* clang-format on */

#define FABRIC_DECLARE(entry) typeof(*((struct rdma_verbs *)NULL)->entry) fabric_##entry;
FABRIC_ENTRIES(FABRIC_DECLARE)
#undef FABRIC_DECLARE

#endif
