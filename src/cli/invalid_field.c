/* invalid_field.c - which field a controller refused a command for, from its error log. */
#include "cli/invalid_field.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "cli/host_options.h"
#include "proto/nvme.h"

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
		  " through power loss (RESCAP); \"weft serve\" does where its subsystem has state:",
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
