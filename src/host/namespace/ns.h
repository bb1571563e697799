/* ns.h - an open namespace: one identity, seen through every path.
 *
 *   ns_record.c ─▶ record ─▶ weft_ns, for each who has opened it
 *   scan.c ─▶ views[path]   what is behind the nsid there          ctrl->lock
 *               └─ access.c ─▶ access[path]   may I/O go there?    one load for who issues a command
 *                          └─▶ rc             may it anywhere? */
#ifndef WEFT_HOST_NAMESPACE_NS_H
#define WEFT_HOST_NAMESPACE_NS_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/ids.h"
#include "base/list.h"
#include "host/config.h"
#include "proto/nvme.h"

struct host_path;

struct host_ns_ids {
	uint8_t uuid[16], nguid[16], eui64[8];
};

/* What a path shows under the namespace's id. */
struct host_ns_view {
	bool scan_due;  /* to be looked at */
	bool validated; /* @rc holds */
	/* 0: it is the one; -ENODEV: nothing; -ESTALE: another one; -EIO: that cannot be known */
	int rc;
	uint64_t refused_ns; /* since when looks are refused: no I/O goes there; 0: the last was not */
	uint32_t group;      /* for asymmetric access; 0: none */
	/* A status contradicts the ANA log page: not to be used before that read of it; 0: none
	 * does. */
	unsigned ana_stale_until;
};

/* Of a namespace through a path, for I/O; what is more is better. */
enum host_access {
	HOST_ACCESS_NONE,
	HOST_ACCESS_PERHAPS, /* there was none, and the controller says that it changed */
	HOST_ACCESS_NON_OPTIMIZED,
	HOST_ACCESS_OPTIMIZED,
};

/* What is written and not flushed, by path (flush.c). It is one for all who have opened the
 * namespace, and outlives them: a flush covers what others wrote. */
struct host_dirty {
	atomic_uint by[HOST_PATHS_MAX]; /* HOST_DIRTY, and HOST_FLUSHING for each Flush in flight */
	atomic_bool gone;               /* a path was removed while it was dirty */
};

/* Under ctrl->lock, but for @dirty's atomics. */
struct host_ns_record {
	struct weft_id id;     /* ctrl->nsids */
	struct weft_list link; /* ctrl->namespaces */
	struct weft_list open; /* weft_ns */
	struct host_dirty dirty;
	struct weft_list scan_due[HOST_PATHS_MAX];     /* ctrl->due: it is to be looked at there */
	struct weft_list scan_refused[HOST_PATHS_MAX]; /* ctrl->refused: the last look there was */
};

struct weft_ns {
	struct weft_list link; /* at->open */
	struct host_ns_record *record;
	struct weft_ctrl *ctrl;
	uint32_t nsid;

	/* Who it is: set by the first look, before weft_ns_open() returns. */
	unsigned block_shift;
	uint32_t copy_max; /* bytes of one source range */
	struct host_ns_ids ids;
	unsigned first_path; /* id of the path that it was found through */
	bool shared;         /* several controllers may have it: NMIC */

	struct host_dirty *dirty; /* of @record */

	/* Under ctrl->lock. */
	bool opening; /* no path has shown it yet */
	int open_rc;  /* why it could not be opened */
	struct weft_err open_err;
	struct weft_err scan_error; /* why the last look that was refused was */
	unsigned losses;            /* of a connection while it was looked at first */
	struct host_ns_view views[HOST_PATHS_MAX];
	uint64_t capacity, used; /* bytes, as of the last look; so are the next two */
	uint32_t optimal_write;
	uint8_t dlfeat;        /* of Identify Namespace */
	uint64_t down_ns;      /* since when no path can be used; 0: one can */
	struct weft_list down; /* ctrl->down, while I/O waits and is to fail */

	atomic_uint extents_lost; /* connections, over the question what is allocated */
	atomic_bool read_only;
	_Atomic uint64_t size; /* bytes */
	atomic_int rc;         /* 0, or why I/O fails */
	_Atomic uint8_t access[HOST_PATHS_MAX];
	_Atomic uint8_t
		scan_pending;     /* live paths, a bit each, that are about to look at it first */
	_Atomic uint8_t replaced; /* paths, a bit each, that show another one in its place */
};

/* identity.c. A look at a namespace: its geometry, or why it cannot be used. */
int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err);
/* From Identify's descriptor list, and from Identify Namespace where that has none. */
void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids);
bool host_ns_has_ids(const struct weft_ns *ns);
uint32_t host_ns_copy_max(const struct nvme_id_ns *id, unsigned block_shift);
/* Controllers before NVMe 1.3 refuse to list descriptors: then there are none. */
bool host_ns_desc_list_unsupported(uint16_t status);

/* ns_validate.c, under ctrl->lock. @rc 0: a look through @path was answered; else why not, or that there
 * is none. true: it has turned out that another one is there. */
bool host_ns_validate(struct host_path *path, struct weft_ns *ns, int rc, struct weft_err why);
/* A look was refused, and may be again if not @final: I/O waits for a while, then it fails. true: that
 * is news. */
bool host_ns_validate_refused(struct host_path *path, struct weft_ns *ns, int rc,
			      const struct weft_err *why, bool final);
/* It cannot be opened through this path: for good, unless another is still to look. */
void host_ns_open_failed(struct weft_ns *ns, int rc, const struct weft_err *why);

/* ns_record.c: something was written there and not flushed. From any thread. */
bool host_dirty_any(const struct host_dirty *dirty);

/* ns_record.c, under ctrl->lock. */
void host_ns_records_init(struct weft_ctrl *ctrl);
void host_ns_records_free(struct weft_ctrl *ctrl);
bool host_ns_records_all_closed(const struct weft_ctrl *ctrl); /* nobody has any open */
/* NULL: there is none. */
struct host_ns_record *host_ns_record_find(const struct weft_ctrl *ctrl, uint32_t nsid);
/* It is made if there is none. NULL: there is no memory. */
struct host_ns_record *host_ns_record_get(struct weft_ctrl *ctrl, uint32_t nsid);
/* @ns is another one who has it open: every path is to look at it. */
void host_ns_record_add_handle(struct host_ns_record *at, struct weft_ns *ns);
/* Somebody who had it open has not any more; the caller's pointer may be void. */
void host_ns_record_free_if_unused(struct weft_ctrl *ctrl, struct host_ns_record *at);
/* The path of this index is to look at it. */
void host_ns_record_mark_due(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index);
/* … and does so now. NULL: none is due. */
struct host_ns_record *host_ns_record_pop_due(struct weft_ctrl *ctrl, unsigned index);
/* … and has. */
void host_ns_record_scanned(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index);
/* Those whose last look was refused, once more. */
void host_ns_records_rescan_refused(struct weft_ctrl *ctrl, unsigned index);

/* extents.c. What @answer, of @size bytes, says of [@slba, @slba + @blocks), from its first block on: so
 * many extents, at most @max, their lengths in blocks; -EPROTO: nothing that can be believed. */
int host_extents_parse(const struct nvme_lba_status *answer, uint32_t size, uint64_t slba,
		       uint64_t blocks, struct weft_ns_extent *extents, unsigned max);

/* ns.c, under ctrl->lock: a path looks at it for the first time, or is about to. */
bool host_ns_has_pending_scan(const struct weft_ns *ns);
/* The path of this index is a new one, or none; nothing is known of it. */
void host_ns_reset_path(struct weft_ctrl *ctrl, unsigned index);

/* access.c, under ctrl->lock: what follows from the paths' states and from what was seen there. */
void host_access_update(struct weft_ctrl *ctrl);
void host_access_update_one(struct weft_ctrl *ctrl, struct host_ns_record *at);

#endif
