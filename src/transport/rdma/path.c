/* path.c - see path.h. */
#include "transport/rdma/path.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "proto/uri.h"

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static const char *fabric_kind(const struct rdma_cm_id *id, uint32_t gid_type)
{
	if (id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iWARP";
	return gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" :
	       gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" :
						  "InfiniBand";
}

/* The queue pair knows which entry of the port's table it uses. */
static void fill_gid(const struct rdma_cm_id *id, uint32_t index, struct weft_path *path)
{
	struct ibv_gid_entry entry = { .gid_type = IBV_GID_TYPE_IB };

	rdma_verbs->query_gid(id->verbs, id->port_num, index, &entry);
	snprintf(path->kind, sizeof(path->kind), "%s", fabric_kind(id, entry.gid_type));
	inet_ntop(AF_INET6, entry.gid.raw, path->gid, sizeof(path->gid));
}

void rdma_query_path(const struct rdma_cm_id *id, struct weft_path *path)
{
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = { .path_mtu = 0 };
	bool iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;

	*path = (struct weft_path){ .transport = "rdma", .port = id->port_num };
	snprintf(path->device, sizeof(path->device), "%s", id->verbs->device->name);
	weft_addr_format(&id->route.addr.src_storage, path->local, sizeof(path->local));
	rdma_verbs->query_qp(id->qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU, &init);
	fill_gid(id, attr.ah_attr.grh.sgid_index, path);
	/* iWARP runs over TCP, which finds its own segment size. */
	if (iwarp)
		return;
	path->mtu = mtu_bytes(attr.path_mtu);
	if (!rdma_verbs->query_port(id->verbs, id->port_num, &port))
		path->port_mtu = mtu_bytes(port.active_mtu);
}
