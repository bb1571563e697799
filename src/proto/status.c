/* status.c - NVMe status from errno, errno from NVMe status, and statuses in words. */
#include "proto/status.h"

#include <errno.h>
#include <stddef.h>

/* DNR (Do Not Retry) means that the same command will fail again on every controller of the
 * subsystem. EIO has no DNR: the kernel's driver has given up for now. A device or file that is
 * gone from this machine has none either: another member of a cluster may have it. A medium error
 * has it: the block is lost for good. So has a full disk: it may have room later, but not for a
 * host that retries at once.
 *
 * No status is a path error: as long as this controller shows its ANA group as accessible, Linux
 * would choose the same path again, and so for ever. */
uint16_t weft_status_from_errno(int rc, bool reading)
{
	uint16_t media = reading ? SC_MEDIA(READ_ERROR) : SC_MEDIA(WRITE_FAULT);

	switch (-rc) {
	case 0:
		return NVME_SC_SUCCESS;
	case EIO:
	case ETIMEDOUT:
	case ENOLINK:
	case ENODEV:
	case ENXIO:
	case ESTALE:
		return media;
	case ENODATA:   /* the block layer's errno for a medium error … */
	case EILSEQ:    /* … for a wrong checksum … */
	case EREMOTEIO: /* … for a device that refuses */
	case EBADMSG:
	case EUCLEAN:
	case ENOTRECOVERABLE: /* unflushed writes are lost, see backend/disk.c */
		return media | SC_DNR;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return SC_GENERIC(CAP_EXCEEDED) | SC_DNR;
	case EROFS:
		return SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR;
	case EOPNOTSUPP:
		return SC_GENERIC(INVALID_OPCODE) | SC_DNR;
	case ENOMEM:
	case EAGAIN:
	case EBUSY:
		return SC_GENERIC(INTERNAL);
	default:
		return SC_GENERIC(INTERNAL) | SC_DNR;
	}
}

int weft_status_to_errno(uint16_t status)
{
	switch (status & 0x7ff) {
	case SC_GENERIC(SUCCESS):
		return 0;
	case SC_GENERIC(LBA_RANGE):
		return -ERANGE;
	case SC_GENERIC(CAP_EXCEEDED):
		return -ENOSPC;
	case SC_GENERIC(INVALID_NS):
		return -ENODEV;
	case SC_GENERIC(INVALID_OPCODE):
		return -EOPNOTSUPP;
	case SC_GENERIC(INVALID_FIELD):
	case SC_COMMAND(CONNECT_INVALID_PARAM):
		return -EINVAL;
	case SC_GENERIC(NS_WRITE_PROTECTED):
		return -EROFS;
	case SC_GENERIC(ABORT_REQ):
		return -ECANCELED;
	case SC_GENERIC(TRAN_TPORT_ERROR):
		return -EBADMSG;
	case SC_COMMAND(CONNECT_INVALID_HOST):
	case SC_MEDIA(ACCESS_DENIED):
		return -EACCES;
	case SC_COMMAND(CONNECT_CTRL_BUSY):
		return -EBUSY;
	case SC_MEDIA(COMPARE_FAILED):
		return -EILSEQ;
	default:
		return -EIO;
	}
}

static const struct {
	uint16_t status;
	const char *text;
} texts[] = {
	{ SC_GENERIC(SUCCESS), "success" },
	{ SC_GENERIC(INVALID_OPCODE), "invalid opcode" },
	{ SC_GENERIC(INVALID_FIELD), "invalid field" },
	{ SC_GENERIC(CMDID_CONFLICT), "command ID conflict" },
	{ SC_GENERIC(DATA_XFER_ERROR), "data transfer error" },
	{ SC_GENERIC(POWER_LOSS), "aborted: power loss" },
	{ SC_GENERIC(INTERNAL), "internal error" },
	{ SC_GENERIC(ABORT_REQ), "abort requested" },
	{ SC_GENERIC(ABORT_QUEUE), "aborted: queue deleted" },
	{ SC_GENERIC(FUSED_FAIL), "aborted: the other fused command failed" },
	{ SC_GENERIC(FUSED_MISSING), "aborted: the other fused command is missing" },
	{ SC_GENERIC(INVALID_NS), "invalid namespace or format" },
	{ SC_GENERIC(CMD_SEQ_ERROR), "command sequence error" },
	{ SC_GENERIC(SGL_INVALID_LAST), "invalid SGL segment descriptor" },
	{ SC_GENERIC(SGL_INVALID_COUNT), "invalid number of SGL descriptors" },
	{ SC_GENERIC(SGL_INVALID_DATA), "data SGL length invalid" },
	{ SC_GENERIC(SGL_INVALID_TYPE), "SGL descriptor type invalid" },
	{ SC_GENERIC(OP_DENIED), "operation denied" },
	{ SC_GENERIC(SGL_INVALID_OFFSET), "SGL offset invalid" },
	{ SC_GENERIC(HOSTID_FORMAT), "host identifier inconsistent format" },
	{ SC_GENERIC(KAT_EXPIRED), "keep alive timeout expired" },
	{ SC_GENERIC(KAT_INVALID), "keep alive timeout invalid" },
	{ SC_GENERIC(CMD_ABORTED_PREMEPT), "aborted: a reservation was preempted" },
	{ SC_GENERIC(SANITIZE_FAILED), "sanitize failed" },
	{ SC_GENERIC(SANITIZE_IN_PROGRESS), "sanitize in progress" },
	{ SC_GENERIC(NS_WRITE_PROTECTED), "namespace is write protected" },
	{ SC_GENERIC(CMD_INTERRUPTED), "command interrupted" },
	{ SC_GENERIC(TRAN_TPORT_ERROR), "transient transport error" },
	{ SC_GENERIC(ADMIN_CMD_MEDIA_NOT_READY), "media not ready" },
	{ SC_GENERIC(LBA_RANGE), "LBA out of range" },
	{ SC_GENERIC(CAP_EXCEEDED), "capacity exceeded" },
	{ SC_GENERIC(NS_NOT_READY), "namespace not ready" },
	{ SC_GENERIC(RESERVATION_CONFLICT), "reservation conflict" },
	{ SC_GENERIC(FORMAT_IN_PROGRESS), "format in progress" },
	{ SC_COMMAND(QID_INVALID), "invalid queue identifier" },
	{ SC_COMMAND(QUEUE_SIZE), "invalid queue size" },
	{ SC_COMMAND(ABORT_LIMIT), "abort command limit exceeded" },
	{ SC_COMMAND(ASYNC_LIMIT), "asynchronous event request limit exceeded" },
	{ SC_COMMAND(INVALID_LOG_PAGE), "invalid log page" },
	{ SC_COMMAND(INVALID_FORMAT), "invalid format" },
	{ SC_COMMAND(INVALID_QUEUE), "invalid queue deletion" },
	{ SC_COMMAND(FEATURE_NOT_SAVEABLE), "feature not saveable" },
	{ SC_COMMAND(FEATURE_NOT_CHANGEABLE), "feature not changeable" },
	{ SC_COMMAND(FEATURE_NOT_PER_NS), "feature not namespace specific" },
	{ SC_COMMAND(OVERLAPPING_RANGE), "overlapping range" },
	{ SC_COMMAND(CCR_IN_PROGRESS), "cross-controller reset in progress" },
	{ SC_COMMAND(CCR_LOG_FULL), "cross-controller reset log page full" },
	{ SC_COMMAND(CCR_LIMIT), "cross-controller reset limit exceeded" },
	{ SC_COMMAND(CONNECT_FORMAT), "connect: incompatible format" },
	{ SC_COMMAND(CONNECT_CTRL_BUSY), "connect: controller busy" },
	{ SC_COMMAND(CONNECT_INVALID_PARAM), "connect: invalid parameters" },
	{ SC_COMMAND(CONNECT_RESTART_DISC), "connect: restart discovery" },
	{ SC_COMMAND(CONNECT_INVALID_HOST), "connect: host not allowed" },
	{ SC_COMMAND(DISCOVERY_RESTART), "discovery: restart" },
	{ SC_COMMAND(AUTH_REQUIRED), "authentication required" },
	{ SC_MEDIA(WRITE_FAULT), "write fault" },
	{ SC_MEDIA(READ_ERROR), "unrecovered read error" },
	{ SC_MEDIA(GUARD_CHECK), "end-to-end guard check error" },
	{ SC_MEDIA(APPTAG_CHECK), "end-to-end application tag check error" },
	{ SC_MEDIA(REFTAG_CHECK), "end-to-end reference tag check error" },
	{ SC_MEDIA(COMPARE_FAILED), "compare failure" },
	{ SC_MEDIA(ACCESS_DENIED), "access denied" },
	{ SC_MEDIA(UNWRITTEN_BLOCK), "deallocated or unwritten block" },
	{ SC_PATH(ANA_INTERNAL_PATH_ERROR), "internal path error" },
	{ SC_PATH(ANA_PERSISTENT_LOSS), "persistent loss of asymmetric access" },
	{ SC_PATH(ANA_INACCESSIBLE), "asymmetric access inaccessible" },
	{ SC_PATH(ANA_TRANSITION), "asymmetric access in transition" },
	{ SC_PATH(CTRL_PATH_ERROR), "controller pathing error" },
	{ SC_PATH(HOST_PATH_ERROR), "host pathing error" },
	{ SC_PATH(CMD_ABORTED_BY_HOST), "aborted by the host" },
};

const char *weft_status_text(uint16_t status)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == (status & 0x7ff))
			return texts[i].text;
	return "unknown status";
}

static const struct {
	uint16_t status;
	int rc;
	const char *text;
} io_texts[] = {
	{ SC_COMMAND(BAD_ATTRIBUTES), -EINVAL, "conflicting attributes" },
	{ SC_COMMAND(INVALID_PI), -EINVAL, "invalid protection information" },
	{ SC_COMMAND(READ_ONLY), -EROFS, "attempted write to a read-only range" },
	{ SC_COMMAND(CMD_SIZE_LIMIT_EXCEEDED), -EMSGSIZE, "command size limit exceeded" },
};

int weft_io_status_to_errno(uint16_t status)
{
	for (size_t i = 0; i < sizeof(io_texts) / sizeof(io_texts[0]); i++)
		if (io_texts[i].status == (status & 0x7ff))
			return io_texts[i].rc;
	return weft_status_to_errno(status);
}

const char *weft_io_status_text(uint16_t status)
{
	for (size_t i = 0; i < sizeof(io_texts) / sizeof(io_texts[0]); i++)
		if (io_texts[i].status == (status & 0x7ff))
			return io_texts[i].text;
	return weft_status_text(status);
}
