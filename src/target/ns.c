/* ns.c - how a command uses a namespace: it looks the namespace up in the table, enters it, may pin
 * its memory, leaves it.
 *
 * A command that finds the namespace quiesced waits in ns->local[].waiting of its reactor. */
#include <assert.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "target/io/io.h"
#include "target/resv/resv.h"

struct tgt_ns *tgt_ns_find(struct weft_subsys *s, uint32_t nsid)
{
	struct ns_table *table = atomic_load_explicit(&s->table, memory_order_acquire);

	if (!table || !nsid || nsid > table->nsid_max)
		return NULL;
	return table->ns[nsid - 1];
}

uint32_t tgt_nsid(const struct weft_req *req)
{
	return le32_to_cpu(req->cmd.common.nsid);
}

uint16_t tgt_ns_lookup(struct weft_req *req, struct tgt_ns **out)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, tgt_nsid(req));
	struct tgt_req *treq = tgt_req(req);

	if (!ns || (treq->ns_serial && treq->ns_serial != ns->serial))
		return SC_GENERIC(INVALID_NS) | SC_DNR;
	treq->ns_serial = ns->serial;
	*out = ns;
	return tgt_ana_check(ctrl, ns);
}

static inline void ns_count_command(struct ns_local *local, struct weft_req *req, struct tgt_ns *ns,
				    bool writer)
{
	struct tgt_req *treq = tgt_req(req);

	assert(!treq->ns);
	treq->ns = ns;
	treq->writer = writer;
	local->users++;
	local->writers += writer;
}

bool tgt_ns_try_enter(struct weft_req *req, struct tgt_ns *ns, bool writer,
		      void (*retry)(struct weft_req *req))
{
	struct ns_local *local = &ns->local[req->qp->group->index];

	if (local->level == NS_QUIESCE_ALL || (writer && local->level == NS_QUIESCE_WRITERS)) {
		assert(!tgt_req(req)->ns); /* a quiesce would wait for it, and it for the quiesce */
		tgt_req(req)->retry = retry;
		weft_list_push(&local->waiting, &req->link);
		return false;
	}
	ns_count_command(local, req, ns, writer);
	return true;
}

void tgt_ns_enter_quiesced(struct weft_req *req, struct tgt_ns *ns, bool writer)
{
	struct ns_local *local = &ns->local[req->qp->group->index];

	assert(local->level != NS_QUIESCE_NONE);
	ns_count_command(local, req, ns, writer);
}

static inline uint16_t ns_check(struct weft_req *req, struct tgt_ns **ns)
{
	uint16_t sc = tgt_req(req)->abort_status;

	if (!sc)
		sc = tgt_ns_lookup(req, ns);
	return sc ? sc : tgt_resv_check(req, *ns);
}

uint16_t tgt_ns_check(struct weft_req *req, struct tgt_ns **ns)
{
	return ns_check(req, ns);
}

struct tgt_ns *tgt_ns_enter(struct weft_req *req, bool writer, void (*retry)(struct weft_req *req))
{
	struct tgt_ns *ns;
	uint16_t sc = ns_check(req, &ns);

	if (sc) {
		tgt_io_finish(req, sc);
		return NULL;
	}
	return tgt_ns_try_enter(req, ns, writer, retry) ? ns : NULL;
}

bool tgt_ns_busy(const struct ns_local *local, enum ns_quiesce_level level)
{
	switch (level) {
	case NS_QUIESCE_WRITERS:
		return local->writers;
	case NS_QUIESCE_ALL:
		return local->users;
	default:
		return local->users || local->pins;
	}
}

static void barrier_arrive_if_idle(struct ns_local *local, struct weft_poll_group *group)
{
	if (local->barrier && !tgt_ns_busy(local, local->barrier_awaits))
		tgt_barrier_arrive(take_ptr(&local->barrier), group);
}

void tgt_ns_pin(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct ns_local *local = &treq->ns->local[req->qp->group->index];

	assert(!treq->pinned && !treq->writer);
	weft_count_down(local->users);
	local->pins++;
	treq->pinned = true;
	barrier_arrive_if_idle(local, req->qp->group);
}

/* Before the reply leaves: a shutdown that its host asks for then finds it. */
static void ns_count_write(struct ns_local *local, const struct tgt_req *treq)
{
	uint64_t writes = atomic_load_explicit(&local->cached_writes, memory_order_relaxed);

	if (!(treq->io.flags & WEFT_IO_FUA))
		atomic_store_explicit(&local->cached_writes, writes + 1, memory_order_release);
}

void tgt_ns_leave(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct ns_local *local;

	if (treq->awaited)
		tgt_ana_command_left(req);
	if (!treq->ns)
		return;
	local = &treq->ns->local[req->qp->group->index];
	if (treq->pinned) {
		weft_count_down(local->pins);
	} else {
		weft_count_down(local->users);
		assert(local->writers >= treq->writer);
		local->writers -= treq->writer;
		if (treq->writer)
			ns_count_write(local, treq);
	}
	treq->ns = NULL;
	treq->pinned = false;
	barrier_arrive_if_idle(local, req->qp->group);
}

uint64_t tgt_ns_awaited_since(struct weft_req *req)
{
	const struct tgt_req *treq = tgt_req(req);

	return treq->pinned && treq->ns->removing ? treq->ns->removing_since_ns : 0;
}

/* --- writes that are not durable yet ---------------------------------------------------------- */

uint64_t tgt_ns_cached_writes(const struct tgt_ns *ns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < ns->subsys->target->npoll_groups; i++)
		sum += atomic_load_explicit(&ns->local[i].cached_writes, memory_order_acquire);
	return sum;
}

/* Flushes overlap, and may end in any order. */
void tgt_ns_flushed(struct tgt_ns *ns, uint64_t writes)
{
	uint64_t flushed = atomic_load(&ns->flushed);

	assert(writes <= tgt_ns_cached_writes(ns));
	while (flushed < writes && !atomic_compare_exchange_weak(&ns->flushed, &flushed, writes))
		;
}

bool tgt_ns_is_flushed(const struct tgt_ns *ns)
{
	return atomic_load(&ns->flushed) >= tgt_ns_cached_writes(ns);
}

void tgt_ns_import_unflushed(struct tgt_ns *ns)
{
	assert_on_control(ns->subsys->target);
	atomic_store(&ns->local[0].cached_writes, 1);
}

/* --- errors of storage ------------------------------------------------------------------------ */

struct ns_errors tgt_ns_errors(const struct tgt_ns *ns)
{
	struct ns_errors sum = { 0 };

	assert_on_control(ns->subsys->target);
	for (unsigned i = 0; i < ns->subsys->target->npoll_groups; i++) {
		sum.reads += atomic_load_explicit(&ns->local[i].read_errors, memory_order_relaxed);
		sum.writes += atomic_load_explicit(&ns->local[i].write_errors,
						   memory_order_relaxed);
	}
	return sum;
}

void tgt_ns_import_errors(struct tgt_ns *ns, const struct ns_errors *errors)
{
	assert_on_control(ns->subsys->target);
	atomic_store(&ns->local[0].read_errors, errors->reads);
	atomic_store(&ns->local[0].write_errors, errors->writes);
}
