/* admin.h - admin commands, and a path's admin queue. */
#ifndef WEFT_HOST_PATH_ADMIN_H
#define WEFT_HOST_PATH_ADMIN_H

#include <assert.h>

#include "base/err.h"
#include "base/list.h"
#include "host/config.h"
#include "proto/nvme.h"
#include "reactor/reactor.h"
#include "transport/link.h"

struct host_path;

enum {
	HOST_ADMIN_DEPTH = 31,    /* of a queue with 32 entries, which every controller has */
	HOST_ADMIN_USER_MAX = 16, /* of them for weft_admin(): ours find room, or the next one */
	HOST_ABORTS_MAX = 4,      /* in flight */
	HOST_PAGE = 4096,
};

struct host_admin {
	struct weft_list link;
	struct host_path *path;
	union nvme_sqe cmd;
	struct nvme_cqe cqe;
	struct iovec iov;
	const char *name;     /* "Identify Controller" */
	uint64_t deadline_ns; /* 0: none */
	bool inflight;        /* or it waits for a slot */
	bool inexact;         /* a success may move less data than there is room for … */
	uint32_t moved;       /* … bytes that it moved */
	/* rc 0: the command was answered, see host_status(); else it was lost. */
	void (*done)(struct host_admin *a, int rc);
};

/* A path's admin queue. */
struct host_admin_queue {
	struct weft_list inflight; /* host_admin */
	struct weft_list waiting;  /* host_admin: for a slot, before the program's */
	unsigned nusers, naborts;  /* of them: the program's, Aborts */
	struct weft_task pump;     /* a slot is free: who waits, and then user_admin.c */
	struct weft_timer timer;   /* the earliest deadline */
};

/* 0: success, whatever the bits beside the code say. */
static inline uint16_t host_status(const struct nvme_cqe *cqe)
{
	uint16_t status = le16_to_cpu(cqe->status) >> 1;

	return status & 0x7ff ? status : 0;
}

/* An empty command, for its owner to fill in and to start. */
static inline void host_admin_prepare(struct host_admin *a, const char *name,
				      void (*done)(struct host_admin *a, int rc))
{
	assert(!a->inflight);
	*a = (struct host_admin){ .name = name, .done = done };
}

/* The admin queue is connected; @a goes out now, or when a slot is free. @timeout_ms, from now on;
 * 0: it may take forever. */
void host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
/* The link is gone: everything in flight is done() with -ECONNRESET. */
void host_admin_lost(struct host_path *path);
void host_admin_init(struct host_path *path);
/* Is there room for a command of the program's? */
bool host_admin_has_room(const struct host_path *path);
extern const struct weft_link_ops host_admin_link_ops;

/* cmd_build.c */
void host_fill_identify(union nvme_sqe *cmd, uint8_t cns, uint32_t nsid);
void host_fill_log_page(union nvme_sqe *cmd, uint8_t lid, uint32_t nsid, uint64_t offset,
			uint32_t length);
void host_fill_lba_status(union nvme_sqe *cmd, uint32_t nsid, uint64_t slba, uint16_t blocks,
			  uint32_t length);
void host_fill_connect(union nvme_sqe *cmd, uint16_t qid, uint32_t depth, uint32_t kato_ms);
void host_connect_data(const struct host_config *config, uint16_t cntlid,
		       struct nvmf_connect_data *data);
void host_fill_property_get(union nvme_sqe *cmd, uint32_t offset, bool wide);
void host_fill_property_set(union nvme_sqe *cmd, uint32_t offset, uint32_t value);
void host_fill_set_feature(union nvme_sqe *cmd, uint8_t fid, uint32_t value);
/* A sentence about a status: "Connect: host not allowed (NVMe status 0x184)", and its -errno. */
int host_fail_status(struct weft_err *err, const char *what, uint16_t status);
/* A better sentence for some refusals of Connect; else @why stays as it is. */
void host_explain_connect(const struct host_config *config, const struct nvme_cqe *cqe,
			  struct weft_err *why);

#endif
