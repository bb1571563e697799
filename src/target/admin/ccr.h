/* ccr.h - a Cross-Controller Reset that is under way, or that the log shows. */
#ifndef WEFT_TARGET_ADMIN_CCR_H
#define WEFT_TARGET_ADMIN_CCR_H

#include "target/cluster/remote_ccr.h"

struct ccr {
	struct weft_list link; /* asked->ccrs */
	struct tgt_ctrl *asked;
	const struct tgt_ctrl *impacted; /* NULL: it is another member's */
	struct tgt_drain_wait drain;     /* of a controller of ours … */
	struct tgt_remote_ccr remote;    /* … or of another member's */
	struct weft_req *req;            /* NULL: answered; this is an entry of the log */
	uint16_t icid;
	uint8_t ciu, status; /* enum nvme_ccr_status */
};

#endif
