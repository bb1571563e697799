#include "proto/status.h"

#include <errno.h>
#include <stddef.h>

uint16_t weft_status_from_errno(int rc)
{
	switch (-rc) {
	case 0:
		return NVME_SC_SUCCESS;
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
		return -EINVAL;
	case SC_GENERIC(NS_WRITE_PROTECTED):
	case SC_COMMAND(READ_ONLY):
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
	{ SC_GENERIC(INTERNAL), "internal error" },
	{ SC_GENERIC(ABORT_REQ), "abort requested" },
	{ SC_GENERIC(ABORT_QUEUE), "aborted: queue deleted" },
	{ SC_GENERIC(FUSED_FAIL), "aborted: the other fused command failed" },
	{ SC_GENERIC(FUSED_MISSING), "aborted: the other fused command is missing" },
	{ SC_GENERIC(INVALID_NS), "invalid namespace or format" },
	{ SC_GENERIC(CMD_SEQ_ERROR), "command sequence error" },
	{ SC_GENERIC(SGL_INVALID_DATA), "data SGL length invalid" },
	{ SC_GENERIC(SGL_INVALID_TYPE), "SGL descriptor type invalid" },
	{ SC_GENERIC(SGL_INVALID_OFFSET), "SGL offset invalid" },
	{ SC_GENERIC(HOSTID_FORMAT), "host identifier inconsistent format" },
	{ SC_GENERIC(KAT_INVALID), "keep alive timeout invalid" },
	{ SC_GENERIC(NS_WRITE_PROTECTED), "namespace is write protected" },
	{ SC_GENERIC(TRAN_TPORT_ERROR), "transient transport error" },
	{ SC_GENERIC(LBA_RANGE), "LBA out of range" },
	{ SC_GENERIC(CAP_EXCEEDED), "capacity exceeded" },
	{ SC_COMMAND(ASYNC_LIMIT), "asynchronous event request limit exceeded" },
	{ SC_COMMAND(INVALID_LOG_PAGE), "invalid log page" },
	{ SC_COMMAND(CONNECT_FORMAT), "connect: incompatible format" },
	{ SC_COMMAND(CONNECT_CTRL_BUSY), "connect: controller busy" },
	{ SC_COMMAND(CONNECT_INVALID_PARAM), "connect: invalid parameters" },
	{ SC_COMMAND(CONNECT_INVALID_HOST), "connect: host not allowed" },
	{ SC_MEDIA(WRITE_FAULT), "write fault" },
	{ SC_MEDIA(READ_ERROR), "unrecovered read error" },
	{ SC_MEDIA(COMPARE_FAILED), "compare failure" },
};

const char *weft_status_text(uint16_t status)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == (status & 0x7ff))
			return texts[i].text;
	return "unknown status";
}
