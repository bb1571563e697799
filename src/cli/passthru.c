/* passthru.c - a command as it is, and what became of its data.
 *
 * A controller may say success and send less than was asked for, or nothing. The rest is zeroes,
 * which look like an answer: a disk without errors, a namespace without a reservation. Whoever
 * shows more than the bytes asks weft_passthru_check() first. */
#include "cli/passthru.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"

int weft_passthru_admin(struct weft_ctrl *ctrl, struct weft_passthru *it, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_admin_moved(ctrl, it->sqe, it->buf, it->length, &it->result, &it->moved,
				  &why);

	if (rc < 0)
		*err = why;
	return rc;
}

static int run_passthru(struct weft_remote *remote, struct weft_queue *queue, struct weft_cmd *cmd,
			struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_remote_run(remote, queue, cmd, &why);

	if (rc < 0 && cmd->status)
		return cmd->status;
	if (rc < 0)
		*err = why;
	return rc;
}

int weft_passthru_io(struct weft_remote *remote, struct weft_passthru *it, struct weft_err *err)
{
	struct iovec iov = { it->buf, it->length };
	struct weft_cmd cmd = {
		.op = WEFT_RAW,
		.ns = remote->ns,
		.length = it->length,
		.iov = &iov,
		.iovcnt = it->length ? 1 : 0,
		.sqe = it->sqe,
	};
	struct weft_queue *queue;
	int rc = weft_remote_queue_open(remote, &queue, err);

	if (rc < 0)
		return rc;
	rc = run_passthru(remote, queue, &cmd, err);
	it->result = cmd.result;
	it->moved = cmd.moved;
	weft_queue_close(queue);
	return rc;
}

int weft_passthru_check(const struct weft_passthru *it, bool admin, uint32_t needed,
			struct weft_err *err)
{
	bool sent = nvme_cmd_direction(it->sqe) == NVME_DIR_TO_HOST;

	if (it->moved >= needed)
		return 0;
	return weft_fail(err, -EPROTO,
			 "%s: the controller says success, but %s only %" PRIu32 " of %" PRIu32
			 " bytes of data",
			 weft_opcode_text(admin, it->sqe->common.opcode), sent ? "sent" : "took",
			 it->moved, needed);
}

/* --- which field it was refused for ----------------------------------------------------------- */

bool weft_invalid_field_ptpl(struct weft_ctrl *ctrl, const char *uri, uint32_t nsid,
			     struct weft_err *err)
{
	_Alignas(8) char page[NVME_IDENTIFY_DATA_SIZE];
	const struct nvme_id_ns *id = (const void *)page;
	struct weft_err ignored = { "" };

	if (weft_identify(ctrl, NVME_IDENTIFY_CNS_NS, nsid, page, &ignored) ||
	    id->rescap & NVME_NS_RESCAP_PTPL)
		return false;
	weft_fail(err, -EOPNOTSUPP,
		  "%s: this controller does not keep the reservations of namespace %" PRIu32
		  " through power loss (RESCAP); \"weft serve\" does if the subsystem has a state file: "
		  "\"state\" in weft.yaml(5)",
		  weft_uri_subsystem(uri).uri, nsid);
	return true;
}

bool weft_invalid_field_feature(struct weft_ctrl *ctrl, const char *uri, uint8_t fid,
				const char *name, struct weft_err *err)
{
	struct nvme_fid_supported_effects_log log;
	struct weft_err ignored = { "" };
	struct weft_uri_buf place = weft_uri_subsystem(uri);

	if (weft_log_page(ctrl, NVME_LOG_LID_FID_SUPPORTED_EFFECTS, NVME_NSID_BROADCAST, 0, &log,
			  sizeof(log), &ignored) ||
	    le32_to_cpu(log.fid_support[fid]) & NVME_FID_SUPPORTED_EFFECTS_FSUPP)
		return false;
	weft_fail(err, -EOPNOTSUPP,
		  "%s has no feature \"%s\"; \"weft log features %s\" lists those that it has",
		  place.uri, name, place.uri);
	return true;
}
