/* read.c - Get Log Page, in pieces that the controller can send at once. */
#include "cli/log/log.h"

static void fill(union nvme_sqe *sqe, const struct log_ask *ask, uint64_t offset, uint32_t length)
{
	uint32_t numd = length / 4 - 1;

	*sqe = (union nvme_sqe){
		.common = {
			.opcode = nvme_admin_get_log_page,
			.nsid = cpu_to_le32(ask->nsid),
			.cdw10 = cpu_to_le32(ask->lid | numd << 16),
			.cdw11 = cpu_to_le32(numd >> 16 | (uint32_t)ask->lsi << 16),
			.cdw12 = cpu_to_le32((uint32_t)offset),
			.cdw13 = cpu_to_le32((uint32_t)(offset >> 32)),
		},
	};
}

int weft_log_read(struct weft_ctrl *ctrl, const struct log_ask *ask, uint32_t piece, void *buf,
		  struct weft_err *err)
{
	struct weft_err why = { "" };
	union nvme_sqe sqe;
	int rc = 0;

	for (uint32_t at = 0; rc == 0 && at < ask->length; at += piece) {
		uint32_t left = ask->length - at, length = left < piece ? left : piece;

		fill(&sqe, ask, ask->offset + at, length);
		rc = weft_admin(ctrl, &sqe, (char *)buf + at, length, NULL, &why);
	}
	if (rc < 0)
		*err = why;
	return rc;
}
