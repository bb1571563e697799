/* ns.h - an open namespace: one identity, seen through every path (multipath).
 *
 *   ns_record.c ─▶ record ─▶ weft_ns, one for each handle that is open
 *   scan.c ─▶ views[path]   what is behind the nsid there          ctrl->lock
 *               └─ access.c ─▶ access[path]   may I/O go there?    one load to issue a command
 *                          └─▶ rc             may it go anywhere? */
#ifndef WEFT_HOST_NAMESPACE_NS_H
#define WEFT_HOST_NAMESPACE_NS_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/id_hash.h"
#include "base/list.h"
#include "host/config.h"
#include "proto/nvme.h"

struct host_path;

struct host_ns_ids {
	uint8_t uuid[16], nguid[16], eui64[8];
};

/* A view: what one path shows under the nsid. */
struct host_ns_view {
	bool scan_due;
	bool validated; /* @rc holds */
	/* 0: this namespace; -ENODEV: none; -ESTALE: another one; -EIO: not known */
	int rc;
	/* Since when scans are refused: no I/O goes there; 0: the last one was not. */
	uint64_t refused_ns;
	uint32_t group; /* ANA group; 0: none */
	/* A status contradicts the ANA log page: the path is not used before this read of the
	 * page; 0: none does. */
	unsigned ana_stale_until;
};

/* Access of I/O to a namespace through a path; higher is better. */
enum host_access {
	HOST_ACCESS_NONE,
	HOST_ACCESS_PERHAPS, /* there was none, and an event says that ANA states changed */
	HOST_ACCESS_NON_OPTIMIZED,
	HOST_ACCESS_OPTIMIZED,
};

/* Unflushed writes by path (flush.c). All handles of the namespace share it, and it outlives them:
 * a flush covers what others wrote. */
struct host_dirty {
	atomic_uint by[HOST_PATHS_MAX]; /* HOST_DIRTY, and HOST_FLUSHING for each Flush in flight */
	atomic_bool gone;               /* a path was removed while it was dirty */
};

/* Under ctrl->lock, except @dirty's atomics. */
struct host_ns_record {
	struct weft_id_node id; /* ctrl->ns_records_by_id */
	struct weft_list link;  /* ctrl->ns_records */
	struct weft_list open;  /* weft_ns */
	struct host_dirty dirty;
	struct weft_list scan_due[HOST_PATHS_MAX];     /* ctrl->due: a scan there is due */
	struct weft_list scan_refused[HOST_PATHS_MAX]; /* ctrl->refused: the last one there was */
};

struct weft_ns {
	struct weft_list link; /* record->open */
	struct host_ns_record *record;
	struct weft_ctrl *ctrl;
	uint32_t nsid;

	/* Its identity: set by the first scan, before weft_ns_open() returns. */
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
	struct weft_err scan_error; /* why the last refused scan was refused */
	struct weft_err io_error;   /* @rc -EIO: why no path could be used, or can be */
	unsigned losses;            /* of a connection during its first scan */
	struct host_ns_view views[HOST_PATHS_MAX];
	uint64_t capacity, used; /* bytes, as of the last scan; so are the next two */
	uint32_t optimal_write;
	uint8_t dlfeat;        /* of Identify Namespace */
	uint64_t down_ns;      /* since when no path can be used; 0: one can */
	struct weft_list down; /* ctrl->ns_down, while I/O waits and is to fail */

	atomic_uint extents_lost; /* connections lost during Get LBA Status */
	atomic_bool read_only;
	_Atomic uint64_t size; /* bytes */
	atomic_int rc;         /* 0, or why I/O fails */
	_Atomic uint8_t access[HOST_PATHS_MAX];
	_Atomic uint8_t scan_pending; /* live paths, a bit each, whose first scan is to come */
	_Atomic uint8_t replaced;     /* paths, a bit each, that show another one in its place */
};

/* identity.c. From Identify Namespace: the block size, or why it cannot be used. */
int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err);
/* From Identify's descriptor list, and from Identify Namespace where that has none. */
void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids);
bool host_ns_has_ids(const struct weft_ns *ns);
uint32_t host_ns_copy_max(const struct nvme_id_ns *id, unsigned block_shift);
/* Controllers before NVMe 1.3 refuse to list descriptors: then there are none. */
bool host_ns_desc_list_unsupported(uint16_t status);

/* ns_validate.c, under ctrl->lock. @rc 0: a scan through @path was answered; else why not, or that
 * there is no such namespace. true: another namespace has taken its place, which is new. */
bool host_ns_validate(struct host_path *path, struct weft_ns *ns, int rc, struct weft_err why);
/* A scan was refused. It is tried again unless @final: I/O waits for a while, then it fails. true:
 * the first refusal. */
bool host_ns_validate_refused(struct host_path *path, struct weft_ns *ns, int rc,
			      const struct weft_err *why, bool final);
/* It cannot be opened through this path: it fails, unless another path is still to scan it. */
void host_ns_open_failed(struct weft_ns *ns, int rc, const struct weft_err *why);

/* ns_record.c: there are unflushed writes. From any thread. */
bool host_dirty_any(const struct host_dirty *dirty);

/* ns_record.c, under ctrl->lock. */
void host_ns_records_init(struct weft_ctrl *ctrl);
void host_ns_records_free(struct weft_ctrl *ctrl);
bool host_ns_records_all_closed(const struct weft_ctrl *ctrl); /* nobody has any open */
/* NULL: there is none. */
struct host_ns_record *host_ns_record_find(const struct weft_ctrl *ctrl, uint32_t nsid);
/* Creates the record if there is none. NULL: no memory. */
struct host_ns_record *host_ns_record_get(struct weft_ctrl *ctrl, uint32_t nsid);
/* @ns is another open handle: a scan is due on every path. */
void host_ns_record_add_handle(struct host_ns_record *at, struct weft_ns *ns);
/* A handle was closed; the record may be freed. */
void host_ns_record_free_if_unused(struct weft_ctrl *ctrl, struct host_ns_record *at);
/* A scan is due on the path with this index. */
void host_ns_record_mark_due(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index);
/* Takes a record that is due, to scan it now. NULL: none is. */
struct host_ns_record *host_ns_record_pop_due(struct weft_ctrl *ctrl, unsigned index);
/* Its scan was not refused. */
void host_ns_record_scanned(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index);
/* Marks the records due whose last scan was refused. */
void host_ns_records_rescan_refused(struct weft_ctrl *ctrl, unsigned index);

/* extents.c. Extents of [@slba, @slba + @blocks) from @answer, which has @size bytes: from the
 * first block on, lengths in blocks. Returns how many, at most @max; -EPROTO: @answer is not
 * valid. */
int host_extents_parse(const struct nvme_lba_status *answer, uint32_t size, uint64_t slba,
		       uint64_t blocks, struct weft_ns_extent *extents, unsigned max);

/* ns.c, under ctrl->lock: a path's first scan of it is under way, or to come: also that of a path
 * whose first attempt to connect is not over. */
bool host_ns_has_pending_scan(const struct weft_ns *ns);
/* The path with this index was added or removed: forgets what was known. */
void host_ns_reset_path(struct weft_ctrl *ctrl, unsigned index);

/* access.c, under ctrl->lock: access to @ns through @path. */
void host_ns_path(const struct host_path *path, const struct weft_ns *ns, struct weft_ns_path *out);
/* access.c, under ctrl->lock: recomputes access from the paths' states and views. */
void host_access_update(struct weft_ctrl *ctrl);
void host_access_update_one(struct weft_ctrl *ctrl, struct host_ns_record *at);

#endif
