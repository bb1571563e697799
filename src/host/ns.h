/* ns.h - an open namespace. */
#ifndef WEFT_HOST_NS_H
#define WEFT_HOST_NS_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/list.h"
#include "proto/nvme.h"

struct host_ns_ids {
	uint8_t uuid[16], nguid[16], eui64[8];
};

struct weft_ns {
	struct weft_list link; /* ctrl->namespaces */
	struct weft_ctrl *ctrl;
	uint32_t nsid;
	unsigned block_shift;
	atomic_bool read_only;
	uint32_t copy_max; /* bytes of one source range */
	struct host_ns_ids ids;
	bool opening, changed; /* under ctrl->lock: a scan came by while it was looked at first */
	unsigned scan_round;   /* under ctrl->lock */
	struct nvme_id_ns id;  /* under ctrl->lock; as of the last look */
	_Atomic uint64_t size; /* bytes */
	atomic_int rc;         /* 0, or why I/O fails */
};

/* A look at a namespace: its geometry, or why it cannot be used. */
int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err);
/* From Identify's descriptor list, and from Identify Namespace where that has none. */
void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids);

/* Controllers before NVMe 1.3 refuse to list descriptors: then there are none. */
bool host_has_no_descriptors(uint16_t status);

#endif
