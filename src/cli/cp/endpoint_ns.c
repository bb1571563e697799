/* endpoint_ns.c - an endpoint: a namespace. Every worker has a queue of its own; steps are commands
 * on it. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print.h"
#include "cli/cp/internal.h"
#include "cli/host_options.h"

#define MAP_MAX 256

struct cp_ns {
	struct cp_endpoint end;
	struct weft_remote remote;
	/* Known extents, from @map_at on. */
	struct weft_ns_extent map[MAP_MAX];
	unsigned mapped, first;
	uint64_t map_at; /* where the first begins */
	struct weft_queue *queues[CP_WORKERS];
	struct weft_cmd flush;
	bool flushing;
};

static struct cp_ns *ns_of(struct cp_endpoint *end)
{
	return (struct cp_ns *)end;
}

/* --- steps ------------------------------------------------------------------------------------ */

static int command_fail(struct cp_xfer *xfer, const struct cp_endpoint *end, int rc)
{
	struct weft_err text = { "" };

	xfer->cmd.rc = rc;
	weft_cmd_text(&xfer->cmd, &text);
	return weft_fail(&xfer->err, rc, "%s: %s", end->name, text.text);
}

static void on_get_done(struct weft_cmd *cmd)
{
	struct cp_xfer *xfer = cmd->user;
	struct cp *cp = xfer->worker->cp;
	struct cp_endpoint *end = cp->verifying ? cp->to : cp->from;

	weft_path_wait_answered(&ns_of(end)->remote.waiting);
	if (cmd->rc < 0)
		command_fail(xfer, end, cmd->rc);
	weft_cp_xfer_step_done(xfer, cmd->rc);
}

static void on_put_done(struct weft_cmd *cmd)
{
	struct cp_xfer *xfer = cmd->user;
	struct cp_endpoint *end = xfer->worker->cp->to;

	weft_path_wait_answered(&ns_of(end)->remote.waiting);
	if (cmd->rc < 0)
		command_fail(xfer, end, cmd->rc);
	weft_cp_xfer_step_done(xfer, cmd->rc);
}

static int submit(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	struct weft_remote *remote = &ns_of(end)->remote;
	int rc;

	weft_path_wait_asked(&remote->waiting, weft_remote_op_text(xfer->cmd.op));
	rc = weft_submit(ns_of(end)->queues[xfer->worker->index], &xfer->cmd);
	if (rc == 0)
		return CP_STARTED;
	weft_path_wait_answered(&remote->waiting);
	return command_fail(xfer, end, rc);
}

static int ns_get(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	xfer->iov = (struct iovec){ xfer->buf, xfer->length };
	xfer->cmd = (struct weft_cmd){
		.op = WEFT_READ,
		.ns = ns_of(end)->remote.ns,
		.offset = end->base + xfer->offset,
		.length = xfer->length,
		.iov = &xfer->iov,
		.iovcnt = 1,
		.done = on_get_done,
		.user = xfer,
	};
	return submit(end, xfer);
}

static int ns_put(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	xfer->iov = (struct iovec){ xfer->buf + xfer->at, xfer->run };
	xfer->cmd = (struct weft_cmd){
		.op = WEFT_WRITE,
		.flags = end->cp->ask->fua ? WEFT_FUA : 0,
		.ns = ns_of(end)->remote.ns,
		.offset = end->base + xfer->offset + xfer->at,
		.length = xfer->run,
		.iov = &xfer->iov,
		.iovcnt = 1,
		.done = on_put_done,
		.user = xfer,
	};
	return submit(end, xfer);
}

/* Write Zeroes, and not Deallocate: what it leaves reads as zeroes on every controller. */
static int ns_zero(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	xfer->cmd = (struct weft_cmd){
		.op = WEFT_ZERO,
		.flags = WEFT_UNMAP,
		.ns = ns_of(end)->remote.ns,
		.offset = end->base + xfer->offset + xfer->at,
		.length = xfer->run,
		.done = on_put_done,
		.user = xfer,
	};
	return submit(end, xfer);
}

/* --- holes ------------------------------------------------------------------------------------ */

/* Reads extents ahead of the copy. Blocks of which nothing is known are read. */
static void ask_for_map(struct cp_ns *ns, uint64_t offset)
{
	uint64_t left = ns->remote.ns_info.size - offset;
	int n;

	weft_path_wait_asked(&ns->remote.waiting, "Get LBA Status");
	n = weft_ns_extents(ns->remote.ns, offset, left < CP_HOLE_MAX ? left : CP_HOLE_MAX, ns->map,
			    MAP_MAX, NULL);
	weft_path_wait_answered(&ns->remote.waiting);
	if (n < 0) {
		ns->map[0] = (struct weft_ns_extent){ CP_HOLE_MAX, true };
		n = 1;
	}
	ns->mapped = (unsigned)n;
	ns->first = 0;
	ns->map_at = offset;
}

/* Pieces are taken in order, so extents before this one are not needed any more. */
static uint64_t ns_hole(struct cp_endpoint *end, uint64_t offset)
{
	struct cp_ns *ns = ns_of(end);

	while (ns->first < ns->mapped && offset - ns->map_at >= ns->map[ns->first].length)
		ns->map_at += ns->map[ns->first++].length;
	if (ns->first == ns->mapped)
		ask_for_map(ns, offset);
	return ns->map[ns->first].data ? 0 : ns->map_at + ns->map[ns->first].length - offset;
}

/* --- the worker's queue ----------------------------------------------------------------------- */

static int ns_worker_open(struct cp_endpoint *end, unsigned worker, struct weft_err *err)
{
	struct cp_ns *ns = ns_of(end);
	int rc = weft_remote_queue_open(&ns->remote, &ns->queues[worker], err);

	return rc < 0 ? weft_fail(err, rc, "%s: queue: %s", end->name, strerror(-rc)) : 0;
}

static int ns_fd(struct cp_endpoint *end, unsigned worker, short *events)
{
	struct weft_queue *queue = ns_of(end)->queues[worker];

	*events = POLLIN;
	return weft_queue_pending(queue) ? weft_queue_fd(queue) : -1;
}

static void ns_poll(struct cp_endpoint *end, unsigned worker, int timeout_ms)
{
	weft_queue_poll(ns_of(end)->queues[worker], timeout_ms);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int ns_prepare(struct cp_endpoint *end, uint64_t total, struct weft_err *err)
{
	(void)total;
	if (ns_of(end)->remote.ns_info.read_only)
		return weft_fail(err, -EROFS, "%s is read-only", end->name);
	return 0;
}

static void on_flushed(struct weft_cmd *cmd)
{
	((struct cp_ns *)cmd->user)->flushing = false;
}

static bool ns_lost(struct cp_endpoint *end)
{
	const struct weft_remote *remote = &ns_of(end)->remote;

	return weft_remote_cache_may_be_lost(remote, &remote->info);
}

/* As long as the library waits for a connection, but no longer than the user does. */
static int ns_flush(struct cp_endpoint *end, struct weft_err *err)
{
	struct cp_ns *ns = ns_of(end);
	struct weft_err why = { "" };
	int rc;

	ns->flush = (struct weft_cmd){
		.op = WEFT_FLUSH, .ns = ns->remote.ns, .done = on_flushed, .user = ns
	};
	ns->flushing = true;
	weft_path_wait_asked(&ns->remote.waiting, "Flush");
	rc = weft_submit(ns->queues[0], &ns->flush);
	while (rc == 0 && ns->flushing) {
		weft_queue_poll(ns->queues[0], 200);
		weft_cp_print_events(end->cp);
		end->cp->stuck = ns->flushing && weft_cp_must_exit();
		if (end->cp->stuck)
			return -EINTR;
	}
	weft_path_wait_answered(&ns->remote.waiting);
	ns->flush.rc = rc < 0 ? rc : ns->flush.rc;
	if (!ns->flush.rc)
		return 0;
	weft_cmd_text(&ns->flush, &why);
	return weft_fail(err, ns->flush.rc, "%s: %s", end->name, why.text);
}

static bool ns_counters(struct cp_endpoint *end, struct weft_queue_stats *sum)
{
	for (unsigned i = 0; i < CP_WORKERS; i++) {
		if (ns_of(end)->queues[i])
			weft_counters_add_queue(ns_of(end)->queues[i], sum);
	}
	return weft_counters_rdma(ns_of(end)->remote.ctrl);
}

static void ns_close(struct cp_endpoint *end)
{
	struct cp_ns *ns = ns_of(end);

	for (unsigned i = 0; i < CP_WORKERS; i++) {
		if (ns->queues[i])
			weft_queue_close(ns->queues[i]);
	}
	weft_remote_close(&ns->remote);
	free(ns);
}

static const struct cp_endpoint_ops ns_ops = {
	.worker_open = ns_worker_open,
	.prepare = ns_prepare,
	.get = ns_get,
	.put = ns_put,
	.zero = ns_zero,
	.hole = ns_hole,
	.fd = ns_fd,
	.poll = ns_poll,
	.flush = ns_flush,
	.counters = ns_counters,
	.lost = ns_lost,
	.close = ns_close,
};

int weft_cp_ns(struct cp *cp, const char *uri, struct cp_endpoint **end, struct weft_err *err)
{
	struct cp_ns *ns = calloc(1, sizeof(*ns));
	const struct weft_ns_info *info;
	int rc;

	if (!ns)
		return weft_fail(err, -ENOMEM, "no memory");
	info = &ns->remote.ns_info;
	*end = &ns->end;
	ns->end = (struct cp_endpoint){ .ops = &ns_ops, .cp = cp, .name = uri };
	rc = weft_remote_open(&ns->remote, cp->ask->quiet ? NULL : cp->ask->command, uri,
			      cp->ask->nsid, &cp->ask->connect, err);
	if (rc < 0)
		return rc;
	ns->end.ctrl = ns->remote.ctrl;
	ns->end.size = info->size;
	ns->end.block = info->block_size;
	ns->end.can_zero = ns->remote.info.can_zero;
	ns->end.workers_max = ns->remote.info.queues < CP_WORKERS ? ns->remote.info.queues :
								    CP_WORKERS;
	return 0;
}

void weft_cp_ns_be_quiet(struct cp_endpoint *end)
{
	if (end->ops == &ns_ops)
		weft_path_wait_end(&ns_of(end)->remote.waiting);
}

static bool is_set(const uint8_t *id, size_t size)
{
	static const uint8_t nothing[16];

	return memcmp(id, nothing, size) != 0;
}

/* By UUID, NGUID or EUI64; without one by address and nsid. */
bool weft_cp_same_ns(const struct cp_endpoint *a, const struct cp_endpoint *b)
{
	const struct cp_ns *from = (const struct cp_ns *)a, *to = (const struct cp_ns *)b;
	const struct weft_ns_info *x, *y;

	if (a->ops != &ns_ops || b->ops != &ns_ops)
		return false;
	x = &from->remote.ns_info;
	y = &to->remote.ns_info;
	if (*x->uuid && *y->uuid)
		return !strcmp(x->uuid, y->uuid);
	if (is_set(x->nguid, 16) && is_set(y->nguid, 16))
		return !memcmp(x->nguid, y->nguid, 16);
	if (is_set(x->eui64, 8) && is_set(y->eui64, 8))
		return !memcmp(x->eui64, y->eui64, 8);
	return x->nsid == y->nsid && !strcmp(from->remote.info.subnqn, to->remote.info.subnqn);
}
