/* read.c - Get Log Page, in pieces that the controller can send at once. */
#include "cli/log/log.h"

#include "cli/passthru.h"

static void build_log_sqe(union nvme_sqe *sqe, const struct log_ask *ask, uint64_t offset,
			  uint32_t length)
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
	union nvme_sqe sqe;
	int rc = 0;

	for (uint32_t at = 0; rc == 0 && at < ask->length; at += piece) {
		uint32_t left = ask->length - at;
		struct weft_passthru it = {
			.sqe = &sqe,
			.buf = (char *)buf + at,
			.length = left < piece ? left : piece,
		};

		build_log_sqe(&sqe, ask, ask->offset + at, it.length);
		rc = weft_passthru_admin(ctrl, &it, err);
		if (rc == 0)
			rc = weft_passthru_check(&it, true, it.length, err);
	}
	return rc;
}
