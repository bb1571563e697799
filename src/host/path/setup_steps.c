/* setup_steps.c - the set-up steps of a controller: each command, and what its answer means.
 *
 *   Connect ─▶ CAP ─▶ VS ─▶ CC.EN ─▶ CSTS.RDY ─▶ Identify ─▶ queues, events
 *
 * An answer that is not acceptable ends the association here, with its reason. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"
#include "host/path/setup_steps.h"

enum {
	CAP_TO_UNIT_MS = 500,
	CONNECT_AUTHREQ = 3 << 16,         /* ATR, ASCR in Connect's result */
	CC_ENABLE = 1 | 6 << 16 | 4 << 20, /* EN, IOSQES 64 bytes, IOCQES 16 bytes */
	CC_CSS_ALL = 6 << 4,
	CC_SHUTDOWN = 1 << 14,
	CSTS_RDY = 1 << 0,
	CSTS_CFS = 1 << 1,
	SGLS_SUPPORTED = 3,
};

/* --- Connect ---------------------------------------------------------------------------------- */

static void fill_connect(struct host_path *path, union nvme_sqe *cmd)
{
	host_connect_data(&path->config, NVME_CNTLID_DYNAMIC,
			  (struct nvmf_connect_data *)path->setup.page);
	host_fill_connect(cmd, 0, HOST_ADMIN_DEPTH, path->config.options.keepalive_ms);
}

static int on_connect(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);

	path->assoc.traits.cntlid = (uint16_t)result;
	if (path->assoc.traits.cntlid > NVME_CNTLID_MAX) {
		host_path_broken(path, -EPROTO, "Connect: the target gave the controller id 0x%x",
				 path->assoc.traits.cntlid);
		return -EPROTO;
	}
	if (result & CONNECT_AUTHREQ) {
		path->assoc.refused = true;
		host_path_broken(path, -EACCES,
				 "Connect: the target wants authentication, which is not built in");
		return -EACCES;
	}
	return 0;
}

/* --- properties ------------------------------------------------------------------------------- */

static void fill_cap(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_property_get(cmd, NVME_REG_CAP, true);
}

static int on_cap(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint64_t cap = le64_to_cpu(cqe->result);
	uint32_t mqes = cap & 0xffff, depth = path->config.options.depth;

	path->assoc.traits.cap = cap;
	path->assoc.traits.depth = depth < mqes ? depth : mqes;
	if (path->assoc.traits.depth)
		return 0;
	host_path_broken(path, -EPROTO, "CAP: the controller's queues have no room (MQES 0)");
	return -EPROTO;
}

static void fill_vs(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_property_get(cmd, NVME_REG_VS, false);
}

static int on_vs(struct host_path *path, const struct nvme_cqe *cqe)
{
	path->assoc.traits.version = (uint32_t)le64_to_cpu(cqe->result);
	return 0;
}

/* CAP.CSS bit 6: the host must select all command sets. */
static uint32_t enabled(const struct host_path *path)
{
	return CC_ENABLE | (path->assoc.traits.cap >> 43 & 1 ? CC_CSS_ALL : 0);
}

static void fill_cc(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_property_set(cmd, NVME_REG_CC, enabled(path));
}

static int on_cc(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint64_t to_ms = (path->assoc.traits.cap >> 24 & 0xff) * CAP_TO_UNIT_MS;

	if (to_ms < path->config.options.connect_ms)
		to_ms = path->config.options.connect_ms;
	path->setup.ready_by_ns = weft_reactor_now_ns(path->reactor) + to_ms * UINT64_C(1000000);
	return 0;
}

static void fill_csts(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_property_get(cmd, NVME_REG_CSTS, false);
}

static int on_csts(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint32_t csts = (uint32_t)le64_to_cpu(cqe->result);

	if (csts & CSTS_CFS) {
		host_path_broken(path, -EIO, "CSTS: the controller reports a fatal state (CFS)");
		return -EIO;
	}
	if (csts & CSTS_RDY)
		return 0;
	if (weft_reactor_now_ns(path->reactor) < path->setup.ready_by_ns)
		return -EAGAIN;
	host_path_broken(path, -ETIMEDOUT, "CSTS: the controller did not become ready in time");
	return -ETIMEDOUT;
}

/* --- Identify --------------------------------------------------------------------------------- */

static void fill_identify(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_identify(cmd, NVME_IDENTIFY_CNS_CTRL, 0);
}

static int check_sgls(struct host_path *path, uint32_t sgls)
{
	if (path->config.transport->trtype == NVMF_TRTYPE_RDMA && !(sgls & NVME_CTRL_SGLS_KEYED))
		host_path_broken(path, -EPROTO,
				 "Identify: the controller says it takes no keyed SGLs");
	else if (!path->assoc.traits.discovery && !(sgls & SGLS_SUPPORTED))
		host_path_broken(path, -EPROTO, "Identify: the controller says it takes no SGLs");
	else
		return 0;
	return -EPROTO;
}

static int on_identify(struct host_path *path, const struct nvme_cqe *cqe)
{
	const struct nvme_id_ctrl *id = (const struct nvme_id_ctrl *)path->setup.page;

	host_traits_identify(&path->assoc.traits, id,
			     !strcmp(path->config.subnqn, NVME_NQN_DISCOVERY));
	return check_sgls(path, le32_to_cpu(id->sgls));
}

static void fill_nvm_limits(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_identify(cmd, NVME_IDENTIFY_CNS_CSI_CTRL, 0);
}

/* NVMe 2.0; older controllers refuse it, and have no other limit than the transfer's. */
static int on_nvm_limits(struct host_path *path, const struct nvme_cqe *cqe)
{
	if (!host_status(cqe))
		host_traits_limits(&path->assoc.traits,
				   (const struct nvme_id_ctrl_nvm *)path->setup.page);
	return 0;
}

/* --- features --------------------------------------------------------------------------------- */

static void fill_queues(struct host_path *path, union nvme_sqe *cmd)
{
	uint32_t n = path->config.options.queues - 1;

	host_fill_set_feature(cmd, NVME_FEAT_FID_NUM_QUEUES, n | n << 16);
}

static int on_queues(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);
	uint32_t sqs = (result & 0xffff) + 1, cqs = (result >> 16) + 1;
	uint32_t n = sqs < cqs ? sqs : cqs;

	path->assoc.traits.queues = n < path->config.options.queues ? n :
								      path->config.options.queues;
	return 0;
}

/* Enables the events that it offers and we act on, and critical warnings. A discovery controller
 * has no health log, and may refuse the whole feature if a warning is asked for. */
static void fill_events(struct host_path *path, union nvme_sqe *cmd)
{
	uint32_t optional = NVME_CTRL_OAES_NA | NVME_CTRL_OAES_ANA | NVME_CTRL_OAES_DL;
	uint32_t health = path->assoc.traits.discovery ? 0 : 0x1f;

	host_fill_set_feature(cmd, NVME_FEAT_FID_ASYNC_EVENT,
			      health | (path->assoc.traits.oaes & optional));
}

static int on_events(struct host_path *path, const struct nvme_cqe *cqe)
{
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

const struct host_setup_step host_setup_steps[] = {
	{ "Connect", sizeof(struct nvmf_connect_data), false, fill_connect, on_connect, false },
	{ "Property Get CAP", 0, false, fill_cap, on_cap, false },
	{ "Property Get VS", 0, false, fill_vs, on_vs, false },
	{ "Property Set CC", 0, false, fill_cc, on_cc, false },
	{ "Property Get CSTS", 0, false, fill_csts, on_csts, false },
	{ "Identify Controller", HOST_PAGE, false, fill_identify, on_identify, false },
	{ "Identify I/O limits", HOST_PAGE, true, fill_nvm_limits, on_nvm_limits, true },
	{ "Set Features: number of queues", 0, true, fill_queues, on_queues, false },
	{ "Set Features: events", 0, false, fill_events, on_events, true },
};

const unsigned host_setup_nsteps = sizeof(host_setup_steps) / sizeof(host_setup_steps[0]);

/* --- the end ---------------------------------------------------------------------------------- */

void host_fill_shutdown(const struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_property_set(cmd, NVME_REG_CC, enabled(path) | CC_SHUTDOWN);
}
