/* flush.c - a flush is sent to every path whose controller has completed writes that are not
 * flushed, because a Flush need not cover another controller's cache (multipath, VWC).
 *
 *   a write is completed ─▶ its path is dirty, for that namespace
 *   flush ─▶ Flush to every path that is dirty when it is submitted; to any, if none is ─▶ done()
 *
 * A Flush covers what its own controller has completed, on whichever queue (NVMe base 2.0, 7.1). A
 * path that is lost, or does not lead to the namespace any more, cannot be flushed. If controllers
 * share the namespace (NMIC), it is flushed through the other paths. If they do not, no other
 * controller has the data: the flush waits for its path, and fails when that is gone for good. A
 * live path is flushed until it has answered. If this queue has no connection there, the flush
 * fails; another queue's may succeed.
 *
 * Invariant: a write that was completed and not flushed has its path dirty, or a Flush that was
 * sent after it is in flight there. When such a Flush fails, the path is dirty again. */
#include "host/queue/flush.h"

#include <errno.h>

/* --- what is dirty ---------------------------------------------------------------------------- */

void host_dirty_path_removed(struct weft_ctrl *ctrl, unsigned index)
{
	struct host_ns_record *at;

	assert_locked(&ctrl->lock);
	weft_list_for_each(at, &ctrl->ns_records, link) {
		struct host_dirty *dirty = &at->dirty;

		assert(atomic_load(&dirty->by[index]) < HOST_FLUSHING);
		if (atomic_exchange(&dirty->by[index], 0))
			atomic_store(&dirty->gone, true);
	}
}

/* --- where a flush has to go ------------------------------------------------------------------ */

/* The dirty paths, a bit each; also those with a Flush in flight, which may fail yet. */
static unsigned dirty_paths(const struct weft_cmd *cmd)
{
	unsigned paths = 0;

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (atomic_load(&cmd->ns->dirty->by[i]))
			paths |= 1u << i;
	return paths;
}

void host_flush_init(struct weft_cmd *cmd)
{
	assert(cmd->op == WEFT_FLUSH && cmd->ns);
	cmd_priv(cmd)->flush_owed = (uint8_t)dirty_paths(cmd);
}

/* Paths that are live, not being removed, and lead to the namespace, whether or not this queue has
 * a connection there. */
static unsigned usable_paths(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	unsigned paths = 0;

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (atomic_load(&cmd->ns->access[i]) &&
		    !(queue->path_queues[i] && queue->path_queues[i]->removing))
			paths |= 1u << i;
	return paths;
}

/* Paths that cannot be used yet, but soon: the queue, the namespace or the path was just opened. */
static unsigned paths_coming_up(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	unsigned paths = atomic_load(&cmd->ns->scan_pending);

	if (atomic_load(&queue->update_posted))
		return UINT8_MAX;
	for (unsigned i = 0; i < queue->npath_queues; i++) {
		const struct host_path_queue *pq = queue->path_queues[i];

		if (pq && pq->link && !pq->link->closing && !pq->ready && !pq->removing &&
		    atomic_load(&cmd->ns->access[i]))
			paths |= 1u << i;
	}
	return paths;
}

/* Paths that need a Flush, and have not been sent one yet. */
static unsigned paths_to_flush(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	unsigned paths = p->flush_owed & ~p->flush_asked, now;

	if (!cmd->ns->shared)
		return paths;
	now = usable_paths(queue, cmd);
	return now ? paths & (now | paths_coming_up(queue, cmd)) : paths;
}

/* 0, or why the flush cannot succeed any more: its path is gone for good, or has no connection for
 * this queue. */
static int flush_failure_rc(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	unsigned paths = paths_to_flush(queue, cmd);

	if (!cmd->ns->shared && atomic_load(&cmd->ns->dirty->gone))
		return -ENOTRECOVERABLE;
	for (unsigned i = 0; i < queue->npath_queues; i++) {
		const struct host_path_queue *pq = queue->path_queues[i];

		if (!(paths >> i & 1) || !pq)
			continue;
		if (!cmd->ns->shared && pq->snap.state == WEFT_DEAD)
			return -ENOTRECOVERABLE;
		if (host_path_queue_is_refused(pq)) {
			host_path_queue_tell_refusal(pq);
			return -EUSERS;
		}
	}
	return 0;
}

int host_flush_plan(const struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	assert(cmd->op == WEFT_FLUSH);
	/* Another flush may have cleaned some of them meanwhile. */
	p->flush_owed &= (uint8_t)(dirty_paths(cmd) | p->flush_asked);
	p->whole = p->issued + (unsigned)__builtin_popcount(paths_to_flush(queue, cmd));
	if (!p->whole && !p->partly_done)
		p->whole = 1;
	return flush_failure_rc(queue, cmd);
}

bool host_flush_is_done(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	assert(cmd->op == WEFT_FLUSH);
	return p->partly_done && (!p->flush_owed || cmd->ns->shared);
}

bool host_flush_path_queue(const struct weft_queue *queue, const struct weft_cmd *cmd,
			   struct host_path_queue **pq)
{
	unsigned paths = paths_to_flush(queue, cmd);

	*pq = NULL;
	for (unsigned i = 0; i < queue->npath_queues; i++) {
		if (!(paths >> i & 1) || !host_path_queue_access(queue->path_queues[i], cmd))
			continue;
		if (!*pq || !(*pq)->link->free)
			*pq = queue->path_queues[i];
	}
	return paths;
}

/* --- a Flush in flight ------------------------------------------------------------------------ */

/* The Flush is counted before the path is marked clean: a reader in between sees one or both. */
void host_flush_sent(const struct host_path_queue *pq, struct weft_cmd *cmd)
{
	atomic_uint *by = &cmd->ns->dirty->by[pq->path->index];
	struct cmd_priv *p = cmd_priv(cmd);
	uint8_t bit = (uint8_t)(1u << pq->path->index);

	assert(!(p->flush_asked & bit));
	p->flush_asked |= bit;
	atomic_fetch_add(by, HOST_FLUSHING);
	if (atomic_fetch_and(by, ~HOST_DIRTY) & HOST_DIRTY)
		p->flush_covers |= bit;
}

void host_flush_complete(const struct host_path_queue *pq, struct weft_cmd *cmd, bool done)
{
	atomic_uint *by = &cmd->ns->dirty->by[pq->path->index];
	struct cmd_priv *p = cmd_priv(cmd);
	uint8_t bit = (uint8_t)(1u << pq->path->index);

	assert(p->flush_asked & bit && atomic_load(by) >= HOST_FLUSHING);
	if (done)
		p->flush_owed &= (uint8_t)~bit;
	else if (p->flush_covers & bit)
		atomic_fetch_or(by, HOST_DIRTY);
	p->flush_covers &= (uint8_t)~bit;
	atomic_fetch_sub(by, HOST_FLUSHING);
}
