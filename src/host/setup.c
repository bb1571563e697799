/* setup.c - from a connection to a live controller: the steps, in order (NVMe base 2.0, 3.5.2).
 *
 *   Connect ─▶ CAP ─▶ VS ─▶ CC.EN ─▶ CSTS.RDY ─▶ Identify ─▶ queues, events ─▶ namespaces ─▶ live
 *
 * A step fills a command and reads its answer. One that says -EAGAIN is repeated after a moment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "host/internal.h"

enum {
	POLL_MS = 20, /* between two looks at CSTS.RDY */
	CAP_TO_UNIT_MS = 500,
	CONNECT_AUTHREQ = 3 << 16,         /* ATR, ASCR in Connect's result */
	CC_ENABLE = 1 | 6 << 16 | 4 << 20, /* EN, IOSQES 64 bytes, IOCQES 16 bytes */
	CC_CSS_ALL = 6 << 4,
	CC_SHUTDOWN = 1 << 14,
	CSTS_RDY = 1 << 0,
	CSTS_CFS = 1 << 1,
	SGLS_SUPPORTED = 3,
	OFCS_DISCONNECT = 1 << 0,
	ANATT_DEFAULT_S = 10,       /* for a controller that does not say */
	TRANSFER_DEFAULT = 1 << 20, /* for a controller that names no limit */
};

struct step {
	const char *name;
	uint32_t length; /* of the data, in path->page */
	bool io_only;    /* a discovery controller has no use for it */
	void (*fill)(struct host_path *path, union nvme_sqe *cmd);
	/* 0: on to the next. Refusals are judged before, unless @tolerant. */
	int (*answer)(struct host_path *path, const struct nvme_cqe *cqe);
	bool tolerant;
};

/* --- Connect -------------------------------------------------------------------------------------- */

static void fill_connect(struct host_path *path, union nvme_sqe *cmd)
{
	host_connect_data(&path->config, NVME_CNTLID_DYNAMIC,
			  (struct nvmf_connect_data *)path->page);
	host_fill_connect(cmd, 0, HOST_ADMIN_DEPTH, path->config.options.keepalive_ms);
}

static int on_connect(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);

	path->traits.cntlid = (uint16_t)result;
	if (path->traits.cntlid > NVME_CNTLID_MAX) {
		host_path_broken(path, -EPROTO, "Connect: the target gave the controller id 0x%x",
				 path->traits.cntlid);
		return -EPROTO;
	}
	if (result & CONNECT_AUTHREQ) {
		path->refused = true;
		host_path_broken(path, -EACCES,
				 "Connect: the target wants authentication, which is not built in");
		return -EACCES;
	}
	return 0;
}

/* --- properties ------------------------------------------------------------------------------------ */

static void property_get(union nvme_sqe *cmd, uint32_t offset, bool wide)
{
	cmd->property.opcode = NVME_FABRICS_OPCODE;
	cmd->property.fctype = NVMF_PROPERTY_GET;
	cmd->property.attrib = wide;
	cmd->property.offset = cpu_to_le32(offset);
}

static void property_set(union nvme_sqe *cmd, uint32_t offset, uint32_t value)
{
	cmd->property.opcode = NVME_FABRICS_OPCODE;
	cmd->property.fctype = NVMF_PROPERTY_SET;
	cmd->property.offset = cpu_to_le32(offset);
	cmd->property.value = cpu_to_le64(value);
}

static void fill_cap(struct host_path *path, union nvme_sqe *cmd)
{
	property_get(cmd, NVME_REG_CAP, true);
}

static int on_cap(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint64_t cap = le64_to_cpu(cqe->result);
	uint32_t mqes = cap & 0xffff, depth = path->config.options.depth;

	path->traits.cap = cap;
	path->traits.depth = depth < mqes ? depth : mqes;
	if (path->traits.depth)
		return 0;
	host_path_broken(path, -EPROTO, "CAP: the controller's queues have no room (MQES 0)");
	return -EPROTO;
}

static void fill_vs(struct host_path *path, union nvme_sqe *cmd)
{
	property_get(cmd, NVME_REG_VS, false);
}

static int on_vs(struct host_path *path, const struct nvme_cqe *cqe)
{
	path->traits.version = (uint32_t)le64_to_cpu(cqe->result);
	return 0;
}

/* CAP.CSS bit 6: it wants to be told that every command set is meant. */
static uint32_t enabled(const struct host_path *path)
{
	return CC_ENABLE | (path->traits.cap >> 43 & 1 ? CC_CSS_ALL : 0);
}

static void fill_cc(struct host_path *path, union nvme_sqe *cmd)
{
	property_set(cmd, NVME_REG_CC, enabled(path));
}

static int on_cc(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint64_t to_ms = (path->traits.cap >> 24 & 0xff) * CAP_TO_UNIT_MS;

	if (to_ms < path->config.options.connect_ms)
		to_ms = path->config.options.connect_ms;
	path->ready_by_ns = weft_reactor_now_ns(path->reactor) + to_ms * UINT64_C(1000000);
	return 0;
}

static void fill_csts(struct host_path *path, union nvme_sqe *cmd)
{
	property_get(cmd, NVME_REG_CSTS, false);
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
	if (weft_reactor_now_ns(path->reactor) < path->ready_by_ns)
		return -EAGAIN;
	host_path_broken(path, -ETIMEDOUT, "CSTS: the controller did not become ready in time");
	return -ETIMEDOUT;
}

/* --- Identify ----------------------------------------------------------------------------------------- */

static void fill_identify(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_identify(cmd, NVME_IDENTIFY_CNS_CTRL, 0);
}

/* A power of two of pages; the memory page size of CAP.MPSMIN. 0: no limit. */
static uint32_t limit_bytes(const struct host_traits *t, uint8_t power)
{
	unsigned page_shift = 12 + (t->cap >> 48 & 0xf);

	return !power ? 0 : power + page_shift > 31 ? 1u << 31 : 1u << (power + page_shift);
}

static void note_limits(struct host_traits *t, const struct nvme_id_ctrl *id)
{
	uint32_t mdts = limit_bytes(t, id->mdts), ioccsz = le32_to_cpu(id->ioccsz);

	t->transfer_max = mdts && mdts < TRANSFER_DEFAULT ? mdts : TRANSFER_DEFAULT;
	t->zero_max = t->verify_max = mdts ? mdts : UINT32_MAX;
	t->trim_blocks = UINT32_MAX;
	/* A capsule holds the command and its data, in units of 16 bytes; ICDOFF puts data further in. */
	t->capsule_max = 0;
	if (!le16_to_cpu(id->icdoff) && ioccsz > 4 && le32_to_cpu(id->sgls) & NVME_CTRL_SGLS_OFFSET)
		t->capsule_max = ioccsz < (1 << 16) ? ioccsz * 16 - 64 : 1 << 20;
	t->blocks_max = id->msdbd ? id->msdbd : 1;
}

/* NVMe base 2.3; these bytes are zero before. */
static void note_instance(struct host_traits *t, const char *page)
{
	__le64 cirn;
	__le16 cqt;

	memcpy(&cirn, page + NVME_ID_CTRL_CIRN, sizeof(cirn));
	memcpy(&cqt, page + NVME_ID_CTRL_CQT, sizeof(cqt));
	t->ciu = (uint8_t)page[NVME_ID_CTRL_CIU];
	t->cirn = le64_to_cpu(cirn);
	t->cqt_ms = le16_to_cpu(cqt);
	t->ccrl = (uint8_t)page[NVME_ID_CTRL_CCRL];
}

static int check_sgls(struct host_path *path, uint32_t sgls)
{
	if (path->config.transport->trtype == NVMF_TRTYPE_RDMA && !(sgls & NVME_CTRL_SGLS_KEYED))
		host_path_broken(path, -EPROTO,
				 "Identify: the controller says it takes no keyed SGLs");
	else if (!path->traits.discovery && !(sgls & SGLS_SUPPORTED))
		host_path_broken(path, -EPROTO, "Identify: the controller says it takes no SGLs");
	else
		return 0;
	return -EPROTO;
}

static int on_identify(struct host_path *path, const struct nvme_cqe *cqe)
{
	const struct nvme_id_ctrl *id = (const struct nvme_id_ctrl *)path->page;
	struct host_traits *t = &path->traits;

	weft_utf8_copy(t->model, id->mn, sizeof(id->mn));
	weft_utf8_copy(t->serial, id->sn, sizeof(id->sn));
	weft_utf8_copy(t->firmware, id->fr, sizeof(id->fr));
	t->discovery = id->cntrltype == NVME_CTRL_CNTRLTYPE_DISCOVERY ||
		       !strcmp(path->config.subnqn, NVME_NQN_DISCOVERY);
	t->oncs = le16_to_cpu(id->oncs);
	t->fuses = le16_to_cpu(id->fuses);
	t->ctratt = le32_to_cpu(id->ctratt);
	t->oaes = le32_to_cpu(id->oaes);
	t->vwc = id->vwc;
	t->aers = id->aerl < HOST_AERS ? id->aerl + 1 : HOST_AERS;
	t->ana = id->cmic & NVME_CTRL_CMIC_MULTI_ANA_REPORTING && !t->discovery;
	t->anatt_s = id->anatt ? id->anatt : ANATT_DEFAULT_S;
	t->ana_groups = le32_to_cpu(id->nanagrpid);
	t->disconnects = le16_to_cpu(id->ofcs) & OFCS_DISCONNECT;
	note_instance(t, path->page);
	if (id->maxcmd && le16_to_cpu(id->maxcmd) < t->depth)
		t->depth = le16_to_cpu(id->maxcmd);
	note_limits(t, id);
	return check_sgls(path, le32_to_cpu(id->sgls));
}

/* 0: not limited. */
static void limit_trim(struct host_traits *t, uint64_t blocks)
{
	if (blocks && blocks < t->trim_blocks)
		t->trim_blocks = blocks;
}

static void fill_nvm_limits(struct host_path *path, union nvme_sqe *cmd)
{
	host_fill_identify(cmd, NVME_IDENTIFY_CNS_CSI_CTRL, 0);
}

/* NVMe 2.0; older controllers refuse it, and have no other limit than the transfer's. */
static int on_nvm_limits(struct host_path *path, const struct nvme_cqe *cqe)
{
	const struct nvme_id_ctrl_nvm *nvm = (const struct nvme_id_ctrl_nvm *)path->page;
	struct host_traits *t = &path->traits;

	if (host_status(cqe))
		return 0;
	if (nvm->wzsl)
		t->zero_max = limit_bytes(t, nvm->wzsl);
	if (nvm->vsl)
		t->verify_max = limit_bytes(t, nvm->vsl);
	limit_trim(t, le32toh(nvm->dmrsl));
	limit_trim(t, le64toh(nvm->dmsl));
	return 0;
}

/* --- features -------------------------------------------------------------------------------------------- */

static void set_feature(union nvme_sqe *cmd, uint8_t fid, uint32_t value)
{
	cmd->common.opcode = nvme_admin_set_features;
	cmd->common.cdw10 = cpu_to_le32(fid);
	cmd->common.cdw11 = cpu_to_le32(value);
}

static void fill_queues(struct host_path *path, union nvme_sqe *cmd)
{
	uint32_t n = path->config.options.queues - 1;

	set_feature(cmd, NVME_FEAT_FID_NUM_QUEUES, n | n << 16);
}

static int on_queues(struct host_path *path, const struct nvme_cqe *cqe)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);
	uint32_t sqs = (result & 0xffff) + 1, cqs = (result >> 16) + 1;
	uint32_t n = sqs < cqs ? sqs : cqs;

	path->traits.queues = n < path->config.options.queues ? n : path->config.options.queues;
	return 0;
}

/* What it offers of the events we act on, and critical warnings; a discovery controller has no
 * health, and may refuse the whole for it. */
static void fill_events(struct host_path *path, union nvme_sqe *cmd)
{
	uint32_t optional = NVME_CTRL_OAES_NA | NVME_CTRL_OAES_ANA | NVME_CTRL_OAES_DL;
	uint32_t health = path->traits.discovery ? 0 : 0x1f;

	set_feature(cmd, NVME_FEAT_FID_ASYNC_EVENT, health | (path->traits.oaes & optional));
}

static int on_events(struct host_path *path, const struct nvme_cqe *cqe)
{
	return 0;
}

/* --- the sequence ------------------------------------------------------------------------------------------ */

static const struct step steps[] = {
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

#define NSTEPS (sizeof(steps) / sizeof(steps[0]))

static void run_step(struct host_path *path);

static void next_step(struct host_path *path)
{
	do {
		path->step++;
	} while (path->step < NSTEPS && steps[path->step].io_only && path->traits.discovery);
	if (path->step < NSTEPS)
		run_step(path);
	else
		host_ana_setup(path); /* ends with host_path_up() */
}

/* A refused parameter is named by its place in Connect's data. */
static void explain_connect(const struct host_path *path, const struct nvme_cqe *cqe,
			    struct weft_err *why)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);
	const uint32_t in_data = 1u << 16;

	if ((host_status(cqe) & 0x7ff) == SC_COMMAND(CONNECT_INVALID_HOST))
		weft_fail(why, 0, "Connect: host not allowed (NVMe status 0x184); this host is %s",
			  path->config.hostnqn);
	if ((host_status(cqe) & 0x7ff) != SC_COMMAND(CONNECT_INVALID_PARAM))
		return;
	if (result == (in_data | offsetof(struct nvmf_connect_data, subsysnqn)))
		weft_fail(why, 0, "Connect: the target has no subsystem %s (NVMe status 0x182)",
			  path->config.subnqn);
	else if (result == (in_data | offsetof(struct nvmf_connect_data, hostnqn)))
		weft_fail(why, 0,
			  "Connect: the target does not take the host NQN %s (NVMe status 0x182)",
			  path->config.hostnqn);
}

static void refused(struct host_path *path, const struct step *step, uint16_t status)
{
	struct weft_err why = { "" };
	int rc;

	if (!path->step)
		explain_connect(path, &path->setup.cqe, &why);
	rc = host_fail_status(&why, step->name, status);
	path->refused = !path->step && status & SC_DNR;
	host_path_broken(path, rc, "%s", why.text);
}

static void on_answer(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	const struct step *step = &steps[path->step];
	uint16_t status = host_status(&a->cqe);

	if (rc < 0 || path->broken)
		return;
	if (status && !step->tolerant) {
		refused(path, step, status);
		return;
	}
	rc = step->answer(path, &a->cqe);
	if (rc == -EAGAIN)
		weft_timer_set(path->reactor, &path->poll, POLL_MS);
	else if (rc == 0)
		next_step(path);
}

static void run_step(struct host_path *path)
{
	const struct step *step = &steps[path->step];
	struct host_admin *a = &path->setup;

	memset(a, 0, sizeof(*a));
	memset(path->page, 0, HOST_PAGE);
	a->name = step->name;
	a->done = on_answer;
	a->iov = (struct iovec){ path->page, step->length };
	step->fill(path, &a->cmd);
	host_admin_start(path, a, path->config.options.connect_ms);
}

static void on_poll(struct weft_timer *timer)
{
	run_step(container_of(timer, struct host_path, poll));
}

void host_setup_start(struct host_path *path)
{
	memset(&path->traits, 0, sizeof(path->traits));
	path->poll.fn = on_poll;
	path->refused = false;
	path->step = 0;
	run_step(path);
}

/* --- the end -------------------------------------------------------------------------------------------------- */

void host_setup_shutdown(struct host_path *path, void (*done)(struct host_admin *a, int rc))
{
	struct host_admin *a = &path->setup;

	memset(a, 0, sizeof(*a));
	a->name = "Property Set CC";
	a->done = done;
	property_set(&a->cmd, NVME_REG_CC, enabled(path) | CC_SHUTDOWN);
	host_admin_start(path, a, path->config.options.connect_ms);
}
