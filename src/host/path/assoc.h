/* assoc.h - a path's association: the admin queue's connection, what the controller behind it is, and
 * why it was lost. */
#ifndef WEFT_HOST_PATH_ASSOC_H
#define WEFT_HOST_PATH_ASSOC_H

#include <weft/host.h>

#include "base/err.h"
#include "proto/nvme.h"
#include "transport/link.h"

struct host_path;

/* What the controller said about itself, as far as we act on it. */
struct host_traits {
	uint64_t cap;
	uint32_t version;
	uint16_t cntlid;
	char model[41], serial[21], firmware[9];
	bool discovery;
	uint32_t transfer_max; /* bytes of one command */
	uint32_t zero_max, verify_max;
	uint64_t trim_blocks; /* of one range */
	uint32_t capsule_max; /* data in an I/O command's capsule */
	uint32_t blocks_max;  /* descriptors of a command's data */
	uint32_t queues, depth;
	uint16_t oacs, oncs, fuses;
	bool tells_allocated; /* it supports Get LBA Status for allocated blocks */
	uint32_t ctratt, oaes;
	uint8_t vwc, aers;
	uint32_t keepalive_step_ms; /* it rounds KATO up to a multiple of that; 0: it has none */
	bool disconnects;           /* it takes the Disconnect command */
	bool ana;                   /* it reports asymmetric access … */
	uint8_t anatt_s;            /* … a change of which takes so long at most … */
	uint32_t ana_groups;        /* … and of so many groups */
	uint8_t ciu, ccrl;          /* its instance, 0: none; others that it resets at a time */
	uint64_t cirn;
	uint16_t cqt_ms;
};

struct host_assoc {
	struct weft_link *link; /* the admin queue's; NULL: none */
	unsigned generation;    /* how many there have been */
	struct host_traits traits;

	/* Why it is lost: the first cause. */
	int rc;
	struct weft_err why;
	bool refused; /* Connect failed with Do Not Retry */
	bool hung_up; /* the controller closed the admin queue's connection: the loss is audible */
};

/* ctrl_traits.c */
/* @discovery: we connected to it as a discovery controller, whatever it says. */
void host_traits_identify(struct host_traits *t, const struct nvme_id_ctrl *id, bool discovery);
void host_traits_limits(struct host_traits *t, const struct nvme_id_ctrl_nvm *nvm);

#endif
