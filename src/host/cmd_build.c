/* cmd_build.c - fills in the admin and fabrics commands that the host sends, and puts a refusal
 * into words. */
#include <stdio.h>
#include <string.h>

#include "host/internal.h"

void host_fill_identify(union nvme_sqe *cmd, uint8_t cns, uint32_t nsid)
{
	cmd->common.opcode = nvme_admin_identify;
	cmd->common.nsid = cpu_to_le32(nsid);
	cmd->common.cdw10 = cpu_to_le32(cns);
}

void host_fill_log_page(union nvme_sqe *cmd, uint8_t lid, uint32_t nsid, uint64_t offset,
			uint32_t length)
{
	uint32_t numd = length / 4 - 1;

	cmd->common.opcode = nvme_admin_get_log_page;
	cmd->common.nsid = cpu_to_le32(nsid);
	cmd->common.cdw10 = cpu_to_le32(lid | (numd & 0xffff) << 16);
	cmd->common.cdw11 = cpu_to_le32(numd >> 16);
	cmd->common.cdw12 = cpu_to_le32((uint32_t)offset);
	cmd->common.cdw13 = cpu_to_le32((uint32_t)(offset >> 32));
}

void host_fill_lba_status(union nvme_sqe *cmd, uint32_t nsid, uint64_t slba, uint16_t blocks,
			  uint32_t length)
{
	cmd->lba_status.opcode = nvme_admin_get_lba_status;
	cmd->lba_status.nsid = cpu_to_le32(nsid);
	cmd->lba_status.slba = cpu_to_le64(slba);
	cmd->lba_status.mndw = cpu_to_le32(length / 4 - 1);
	cmd->lba_status.rl = cpu_to_le16(blocks);
	cmd->lba_status.atype = NVME_LBA_STATUS_ALLOCATED;
}

/* Without SQ flow control a controller may complete a read with its data alone. */
void host_fill_connect(union nvme_sqe *cmd, uint16_t qid, uint32_t depth, uint32_t kato_ms)
{
	cmd->connect.opcode = NVME_FABRICS_OPCODE;
	cmd->connect.fctype = NVMF_CONNECT;
	cmd->connect.qid = cpu_to_le16(qid);
	cmd->connect.sqsize = cpu_to_le16((uint16_t)(depth ? depth : 1));
	cmd->connect.cattr = NVMF_CATTR_NO_SQ_FLOW;
	cmd->connect.kato = cpu_to_le32(kato_ms);
}

void host_connect_data(const struct host_config *config, uint16_t cntlid,
		       struct nvmf_connect_data *data)
{
	memset(data, 0, sizeof(*data));
	memcpy(data->hostid, config->hostid, sizeof(data->hostid));
	data->cntlid = cpu_to_le16(cntlid);
	snprintf(data->subsysnqn, sizeof(data->subsysnqn), "%s", config->subnqn);
	snprintf(data->hostnqn, sizeof(data->hostnqn), "%s", config->hostnqn);
}

void host_fill_property_get(union nvme_sqe *cmd, uint32_t offset, bool wide)
{
	cmd->property.opcode = NVME_FABRICS_OPCODE;
	cmd->property.fctype = NVMF_PROPERTY_GET;
	cmd->property.attrib = wide;
	cmd->property.offset = cpu_to_le32(offset);
}

void host_fill_property_set(union nvme_sqe *cmd, uint32_t offset, uint32_t value)
{
	cmd->property.opcode = NVME_FABRICS_OPCODE;
	cmd->property.fctype = NVMF_PROPERTY_SET;
	cmd->property.offset = cpu_to_le32(offset);
	cmd->property.value = cpu_to_le64(value);
}

void host_fill_set_feature(union nvme_sqe *cmd, uint8_t fid, uint32_t value)
{
	cmd->common.opcode = nvme_admin_set_features;
	cmd->common.cdw10 = cpu_to_le32(fid);
	cmd->common.cdw11 = cpu_to_le32(value);
}

int host_fail_status(struct weft_err *err, const char *what, uint16_t status)
{
	const char *text = weft_status_text(status);
	size_t prefix = strlen(what);

	/* "Connect: connect: host not allowed" says it twice. */
	if (!strncasecmp(text, what, prefix) && text[prefix] == ':')
		text += prefix + 2;
	return weft_fail(err, weft_status_to_errno(status), "%s: %s (NVMe status 0x%x)", what, text,
			 status & 0x7ff);
}

/* A refused parameter is named by its place in Connect's data. */
void host_explain_connect(const struct host_config *config, const struct nvme_cqe *cqe,
			  struct weft_err *why)
{
	uint32_t result = (uint32_t)le64_to_cpu(cqe->result);
	const uint32_t in_data = 1u << 16;

	if ((host_status(cqe) & 0x7ff) == SC_COMMAND(CONNECT_INVALID_HOST))
		weft_fail(why, 0, "Connect: host not allowed (NVMe status 0x184); this host is %s",
			  config->hostnqn);
	if ((host_status(cqe) & 0x7ff) != SC_COMMAND(CONNECT_INVALID_PARAM))
		return;
	if (result == (in_data | offsetof(struct nvmf_connect_data, subsysnqn)))
		weft_fail(why, 0, "Connect: the target has no subsystem %s (NVMe status 0x182)",
			  config->subnqn);
	else if (result == (in_data | offsetof(struct nvmf_connect_data, hostnqn)))
		weft_fail(why, 0,
			  "Connect: the target does not take the host NQN %s (NVMe status 0x182)",
			  config->hostnqn);
}
