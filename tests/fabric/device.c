/* device.c - the two adapters, what they say of themselves, and their end. */

#include "fabric/internal.h"

enum { VECTORS = 4, GIDS = 6 };

static struct fabric_dev devs[FABRIC_DEVICES];
static unsigned ndevs;

static const struct ibv_device_attr usual_attr = {
	.fw_ver = "1.0",
	.max_mr_size = UINT64_MAX,
	.page_size_cap = 4096,
	.max_qp = 1 << 16,
	.max_qp_wr = 16384,
	.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS,
	.max_sge = 30,
	.max_sge_rd = 30,
	.max_cq = 1 << 16,
	.max_cqe = 1 << 20,
	.max_mr = 1 << 20,
	.max_pd = 1 << 16,
	.max_qp_rd_atom = 16,
	.max_res_rd_atom = 1 << 16,
	.max_qp_init_rd_atom = 16,
	.max_srq = 1 << 10,
	.max_srq_wr = 32767,
	.max_srq_sge = 31,
	.max_pkeys = 1,
	.phys_port_cnt = 1,
};

static const struct ibv_port_attr usual_port = {
	.state = IBV_PORT_ACTIVE,
	.max_mtu = IBV_MTU_4096,
	.active_mtu = IBV_MTU_1024,
	.gid_tbl_len = GIDS,
	.max_msg_sz = 1u << 30,
	.active_width = 2,
	.active_speed = 32,
	.phys_state = 5,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};

static void device_begin(struct fabric_dev *dev, const char *name, bool iwarp)
{
	memset(dev, 0, sizeof(*dev));
	if (fabric_fifo_open(&dev->async) < 0)
		abort();
	dev->iwarp = iwarp;
	dev->dev.node_type = iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	dev->dev.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	strcpy(dev->dev.name, name);
	strcpy(dev->dev.dev_name, iwarp ? "uverbs1" : "uverbs0");
	dev->ctx.device = &dev->dev;
	dev->ctx.cmd_fd = -1;
	dev->ctx.async_fd = dev->async.fd;
	dev->ctx.num_comp_vectors = VECTORS;
	dev->pd.pub.context = &dev->ctx;
	dev->conf = (struct fabric_device){ .attr = usual_attr,
					    .port = usual_port,
					    .max_inline = 256,
					    .dmabuf = !iwarp,
					    .invalidates = true,
					    .stale_cqes = iwarp };
	if (iwarp) {
		dev->conf.attr.max_sge_rd = 1;
		dev->conf.port.gid_tbl_len = 1;
	}
}

void fabric_devices_begin(void)
{
	ndevs = 0;
	device_begin(&devs[ndevs++], "fake0", false);
	device_begin(&devs[ndevs++], "iwarp0", true);
}

void fabric_devices_end(void)
{
	for (struct fabric_dev *dev = devs; dev < devs + ndevs; dev++) {
		struct fabric_async_event *event, *tmp;

		weft_list_for_each_safe(event, tmp, &dev->async.items, link)
			free(event);
		weft_list_init(&dev->async.items);
		fabric_fifo_close(&dev->async);
	}
}

struct fabric_dev *fabric_dev_of(struct ibv_context *ctx)
{
	return container_of(ctx, struct fabric_dev, ctx);
}

/* The latest of that name. */
static struct fabric_dev *find_device(const char *name)
{
	for (struct fabric_dev *dev = devs + ndevs; dev-- > devs;)
		if (strcmp(dev->dev.name, name) == 0)
			return dev;
	abort();
}

struct fabric_device *fabric_device(const char *name)
{
	return &find_device(name)->conf;
}

struct ibv_context *fabric_context(const char *name)
{
	return &find_device(name)->ctx;
}

/* --- its end, and other news ------------------------------------------------------------------ */

void fabric_remove(const char *device)
{
	struct fabric_dev *dev = find_device(device);
	struct fabric_id *id;
	FABRIC_LOCKED;

	dev->removed = true;
	fabric_async_push(dev, (struct ibv_async_event){ .event_type = IBV_EVENT_DEVICE_FATAL });
	weft_list_for_each(id, &fabric_ids, link)
		if (id->dev == dev)
			fabric_event_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* As librdmacm has it: a context of its own, and what belonged to the old one stays with that. */
void fabric_restore(const char *device)
{
	const struct fabric_dev *old = find_device(device);
	FABRIC_LOCKED;

	if (ndevs == FABRIC_DEVICES)
		abort();
	device_begin(&devs[ndevs], device, old->iwarp);
	devs[ndevs++].conf = old->conf;
}
