/* query.c - the table's entries that ask an adapter. */
#include <arpa/inet.h>

#include "fabric/internal.h"
#include "fabric/ops.h"

int fabric_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(query_device);
	*attr = fabric_dev_of(ctx)->conf.attr;
	return 0;
}

int fabric_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(query_port);
	if (port != 1)
		return EINVAL;
	*attr = fabric_dev_of(ctx)->conf.port;
	return 0;
}

/* Link-local, 127.0.0.1, ::1; each once for RoCE v1 and v2. */
static void roce_gid(uint32_t index, union ibv_gid *gid)
{
	static const char *const addrs[] = { "fe80::5054:ff:fe00:1", "::ffff:127.0.0.1", "::1" };

	inet_pton(AF_INET6, addrs[index / 2], gid->raw);
}

int fabric_query_gid(struct ibv_context *ctx, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry)
{
	struct fabric_dev *dev = fabric_dev_of(ctx);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(query_gid);
	if (port != 1 || index >= (uint32_t)dev->conf.port.gid_tbl_len)
		return EINVAL;
	*entry = (struct ibv_gid_entry){ .gid_index = index, .port_num = port, .ndev_ifindex = 1 };
	if (dev->iwarp) {
		memcpy(entry->gid.raw, "\x52\x54\x00\x00\x00\x01", 6);
		entry->gid_type = IBV_GID_TYPE_IB;
		return 0;
	}
	roce_gid(index, &entry->gid);
	entry->gid_type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return 0;
}

/* Its devices have nothing open. */
void fabric_sync_devices(void)
{
}
