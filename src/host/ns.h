/* ns.h - an open namespace: one identity, seen through every path.
 *
 *   scan.c ─▶ views[path]   what is behind the nsid there          ctrl->lock
 *               └─ access.c ─▶ access[path]   may I/O go there?    one load for who issues a command
 *                          └─▶ rc             may it anywhere? */
#ifndef WEFT_HOST_NS_H
#define WEFT_HOST_NS_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/list.h"
#include "host/config.h"
#include "proto/nvme.h"

struct host_path;

struct host_ns_ids {
	uint8_t uuid[16], nguid[16], eui64[8];
};

/* What a path shows under the namespace's id. */
struct host_ns_view {
	bool due;       /* to be looked at */
	bool looked;    /* @rc holds */
	int rc;         /* 0: it is the one; -ENODEV: nothing; -ESTALE: another one */
	uint32_t group; /* for asymmetric access; 0: none */
	/* A status contradicts the ANA log page: not to be used before that read of it; 0: none
	 * does. */
	unsigned doubt;
};

/* Of a namespace through a path, for I/O; what is more is better. */
enum host_access {
	HOST_ACCESS_NONE,
	HOST_ACCESS_PERHAPS, /* there was none, and the controller says that it changed */
	HOST_ACCESS_NON_OPTIMIZED,
	HOST_ACCESS_OPTIMIZED,
};

struct weft_ns {
	struct weft_list link; /* ctrl->namespaces */
	struct weft_ctrl *ctrl;
	uint32_t nsid;

	/* Who it is: set by the first look, before weft_ns_open() returns. */
	unsigned block_shift;
	uint32_t copy_max; /* bytes of one source range */
	struct host_ns_ids ids;
	unsigned first_path; /* id of the path that it was found through */

	/* Under ctrl->lock. */
	bool opening; /* no path has shown it yet */
	int open_rc;  /* why it could not be opened */
	struct weft_err open_err;
	unsigned losses; /* of a connection while it was looked at first */
	struct host_ns_view views[HOST_PATHS_MAX];
	struct nvme_id_ns id; /* as of the last look */
	uint64_t down_ns;     /* since when no path can be used; 0: one can */

	atomic_bool read_only;
	_Atomic uint64_t size; /* bytes */
	atomic_int rc;         /* 0, or why I/O fails */
	_Atomic uint8_t access[HOST_PATHS_MAX];
};

/* identity.c. A look at a namespace: its geometry, or why it cannot be used. */
int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err);
/* From Identify's descriptor list, and from Identify Namespace where that has none. */
void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids);
bool host_ns_has_ids(const struct weft_ns *ns);
uint32_t host_ns_copy_max(const struct nvme_id_ns *id, unsigned block_shift);
/* Controllers before NVMe 1.3 refuse to list descriptors: then there are none. */
bool host_has_no_descriptors(uint16_t status);

/* sight.c, under ctrl->lock. @rc 0: a look through @path was answered; else why not, or that there
 * is none. true: it has turned out that another one is there. */
bool host_sight(struct host_path *path, struct weft_ns *ns, int rc, struct weft_err why);
/* It cannot be opened through this path: for good, unless another is still to look. */
void host_sight_fail(struct weft_ns *ns, int rc, const struct weft_err *why);

/* ns.c, under ctrl->lock: a path looks at it for the first time, or is about to. */
bool host_ns_is_awaited(const struct weft_ns *ns);
/* The path of this index is a new one, or none; nothing is known of it. */
void host_ns_new_path(struct weft_ctrl *ctrl, unsigned index);

/* access.c, under ctrl->lock: what follows from the paths' states and from what was seen there. */
void host_access_update(struct weft_ctrl *ctrl);

#endif
