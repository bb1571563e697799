/* ns.c - namespaces: the table that reactors read, who holds one, adding, resizing, removing.
 *
 *   add:     open ─▶ publish a new table ─▶ tell hosts
 *   remove:  publish a table without it ─▶ tell hosts ─▶ fences end ─▶ commands end ─▶ close
 *   resize:  fence against all ─▶ change ─▶ let go ─▶ tell hosts
 *
 * Invariant: a table never changes once published; the old one is freed after every reactor has
 * been through its loop. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/uuid.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"
#include "target/io/io.h"
#include "target/resv/resv.h"

/* --- on a reactor ------------------------------------------------------------------------------ */

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

uint16_t tgt_ns_of(struct weft_req *req, struct tgt_ns **out)
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

bool tgt_ns_try_enter(struct weft_req *req, struct tgt_ns *ns, bool writer,
		      void (*again)(struct weft_req *req))
{
	struct ns_local *local = &ns->local[req->qp->group->index];
	struct tgt_req *treq = tgt_req(req);

	assert(!treq->ns);
	if (local->hold == NS_HOLD_ALL || (writer && local->hold == NS_HOLD_WRITERS)) {
		treq->again = again;
		weft_list_push(&local->waiting, &req->link);
		return false;
	}
	treq->ns = treq->on = ns;
	treq->writer = writer;
	local->users++;
	local->writers += writer;
	return true;
}

struct tgt_ns *tgt_ns_enter(struct weft_req *req, bool writer, void (*again)(struct weft_req *req))
{
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_of(req, &ns);

	if (!sc)
		sc = tgt_resv_check(req, ns);
	if (sc) {
		tgt_io_finish(req, sc);
		return NULL;
	}
	return tgt_ns_try_enter(req, ns, writer, again) ? ns : NULL;
}

bool tgt_ns_busy(const struct ns_local *local, enum ns_hold hold)
{
	switch (hold) {
	case NS_HOLD_WRITERS:
		return local->writers;
	case NS_HOLD_ALL:
		return local->users;
	default:
		return local->users || local->pins;
	}
}

static void answer_round(struct ns_local *local, struct weft_group *group)
{
	if (local->round && !tgt_ns_busy(local, local->round_waits))
		tgt_round_answer(take_ptr(&local->round), group);
}

void tgt_ns_pin(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct ns_local *local = &treq->ns->local[req->qp->group->index];

	local->users--;
	local->pins++;
	treq->pinned = true;
	answer_round(local, req->qp->group);
}

void tgt_ns_leave(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct ns_local *local;

	if (treq->awaited)
		tgt_ana_left(req);
	if (!treq->ns)
		return;
	local = &treq->ns->local[req->qp->group->index];
	if (treq->pinned) {
		local->pins--;
	} else {
		local->users--;
		local->writers -= treq->writer;
	}
	treq->ns = NULL;
	answer_round(local, req->qp->group);
}

/* --- the table ----------------------------------------------------------------------------------- */

static struct ns_table *table_of(struct weft_subsys *s)
{
	return atomic_load_explicit(&s->table, memory_order_relaxed);
}

static uint32_t nsid_max(struct weft_subsys *s)
{
	return table_of(s) ? table_of(s)->nsid_max : 0;
}

/* A copy of the table with @nsid set to @ns, which may be NULL. */
static struct ns_table *table_with(struct weft_subsys *s, uint32_t nsid, struct tgt_ns *ns)
{
	struct ns_table *old = table_of(s), *table;
	uint32_t max = nsid_max(s) > nsid ? nsid_max(s) : nsid;

	table = calloc(1, sizeof(*table) + max * sizeof(table->ns[0]));
	if (!table)
		return NULL;
	if (old)
		memcpy(table->ns, old->ns, old->nsid_max * sizeof(old->ns[0]));
	table->ns[nsid - 1] = ns;
	while (max && !table->ns[max - 1])
		max--;
	table->nsid_max = max;
	return table;
}

static int publish(struct weft_subsys *s, uint32_t nsid, struct tgt_ns *ns)
{
	struct ns_table *table = table_with(s, nsid, ns), *old = table_of(s);
	struct tgt_round *round = tgt_round_new(s->target);

	if (!table || !round) {
		free(table);
		free(round);
		return -ENOMEM;
	}
	atomic_store_explicit(&s->table, table, memory_order_release);
	tgt_free_later(s->target, round, old);
	return 0;
}

/* --- adding --------------------------------------------------------------------------------------- */

static uint32_t lowest_free_nsid(struct weft_subsys *s)
{
	uint32_t nsid = 1;

	while (tgt_ns_find(s, nsid))
		nsid++;
	return nsid;
}

/* The namespace's block in bytes, or -errno. */
static int choose_block(uint32_t block, const struct weft_backend *be, struct weft_err *err)
{
	if (!block)
		block = be->size % 4096 == 0 ? 4096 : 512;
	if (block != 512 && block != 4096)
		return weft_fail(err, -EINVAL, "block %u: expected 512 or 4096", block);
	if (block < be->block_min)
		return weft_fail(err, -EINVAL,
				 "%s: its own blocks are of %u bytes, block=%u is smaller",
				 be->spec, be->block_min, block);
	if (!be->size || be->size % block)
		return weft_fail(err, -EINVAL,
				 "%s: its size, %llu bytes, is not a multiple of block=%u",
				 be->spec, (unsigned long long)be->size, block);
	return (int)block;
}

static bool uuid_taken(struct weft_target *t, const uint8_t uuid[16])
{
	struct weft_subsys *s;

	weft_list_for_each(s, &t->subsystems, link) {
		for (uint32_t i = 1; i <= nsid_max(s); i++)
			if (tgt_ns_find(s, i) && !memcmp(tgt_ns_find(s, i)->uuid, uuid, 16))
				return true;
	}
	return false;
}

static int choose_uuid(struct tgt_ns *ns, const struct weft_ns_options *options,
		       struct weft_err *err)
{
	struct weft_subsys *s = ns->subsys;

	if (!options->uuid || !options->uuid[0])
		tgt_identity_uuid(s->nqn, s->cluster, ns->nsid, ns->be->spec, ns->uuid);
	else if (weft_uuid_parse(options->uuid, ns->uuid) < 0)
		return weft_fail(err, -EINVAL, "uuid %s: expected 8-4-4-4-12 hexadecimal digits",
				 options->uuid);
	if (uuid_taken(s->target, ns->uuid))
		return weft_fail(err, -EEXIST, "another namespace has this uuid already");
	memcpy(ns->nguid, ns->uuid, sizeof(ns->nguid));
	return 0;
}

static struct tgt_ns *ns_new(struct weft_subsys *s, uint32_t nsid, struct weft_backend *be,
			     uint32_t block)
{
	size_t size = sizeof(struct tgt_ns) + s->target->ngroups * sizeof(struct ns_local);
	struct tgt_ns *ns = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (!ns)
		return NULL;
	memset(ns, 0, size);
	ns->subsys = s;
	ns->be = be;
	ns->nsid = nsid;
	ns->serial = ++s->target->ns_serial;
	ns->lba_shift = block == 4096 ? 12 : 9;
	atomic_init(&ns->blocks, be->size >> ns->lba_shift);
	weft_list_init(&ns->fences);
	for (unsigned i = 0; i < s->target->ngroups; i++)
		weft_list_init(&ns->local[i].waiting);
	ns->round = tgt_round_new(s->target);
	if (!ns->round) {
		free(ns);
		return NULL;
	}
	ns->round->ns = ns;
	return ns;
}

static void ns_free(struct tgt_ns *ns)
{
	free(atomic_load(&ns->resv));
	free(ns->round);
	free(ns);
}

static int check_nsid(struct weft_subsys *s, uint32_t nsid, struct weft_err *err)
{
	if (nsid > WEFT_NSID_MAX)
		return weft_fail(err, -EINVAL, "nsid %u: expected 1 to %d", nsid, WEFT_NSID_MAX);
	if (tgt_ns_find(s, nsid))
		return weft_fail(err, -EEXIST, "%s has a namespace %u already", s->nqn, nsid);
	return 0;
}

static int load_reservation(struct tgt_ns *ns, struct weft_err *err)
{
	int rc = tgt_resv_load(ns);

	return rc < 0 ? weft_fail(err, rc, "namespace %u: its reservation cannot be read: %s",
				  ns->nsid, strerror(-rc)) :
			0;
}

int weft_ns_add(struct weft_subsys *s, const struct weft_ns_options *options,
		struct weft_backend *be, uint32_t *nsid_out, struct weft_err *err)
{
	uint32_t nsid = options->nsid ? options->nsid : lowest_free_nsid(s);
	int block = choose_block(options->block, be, err);
	struct tgt_ns *ns;
	int rc;

	if (block < 0)
		return block;
	if (options->ana_group > WEFT_ANA_GROUP_MAX)
		return weft_fail(err, -EINVAL, "ana_group %u: expected 1 to %d", options->ana_group,
				 WEFT_ANA_GROUP_MAX);
	rc = check_nsid(s, nsid, err);
	if (rc == 0)
		rc = tgt_cluster_check_storage(s, be, err);
	if (rc < 0)
		return rc;
	ns = ns_new(s, nsid, be, (uint32_t)block);
	if (!ns)
		return weft_fail(err, -ENOMEM, "out of memory");
	ns->ana_group = options->ana_group ? options->ana_group : 1;
	rc = choose_uuid(ns, options, err);
	if (rc == 0)
		rc = load_reservation(ns, err);
	if (rc == 0)
		rc = publish(s, nsid, ns);
	if (rc < 0) {
		ns_free(ns);
		return rc;
	}
	tgt_ana_ns_changed(s, ns->ana_group);
	tgt_ns_changed(s, nsid);
	*nsid_out = nsid;
	return 0;
}

/* --- removing -------------------------------------------------------------------------------------- */

static void drained(struct tgt_round *round)
{
	struct tgt_ns *ns = round->ns;
	void (*removed)(void *arg) = ns->removed;
	struct weft_target *t = round->target;
	void *arg = ns->removed_arg;

	weft_backend_close(ns->be);
	ns_free(ns);
	removed(arg);
	tgt_target_part_ended(t);
}

static void drain_visit(struct tgt_round *round, struct weft_group *group)
{
	struct ns_local *local = &round->ns->local[group->index];

	if (!tgt_ns_busy(local, NS_HOLD_MEMORY)) {
		tgt_round_answer(round, group);
		return;
	}
	local->round = round;
	local->round_waits = NS_HOLD_MEMORY;
}

/* Called when nobody is in line for the namespace: the last step of a removal can begin. */
void tgt_ns_drained_or_free(struct tgt_ns *ns)
{
	if (!ns->removing)
		return;
	ns->round->visit = drain_visit;
	ns->round->done = drained;
	tgt_round_start(ns->round);
}

static void remove_begin(struct tgt_ns *ns, void (*done)(void *arg), void *arg)
{
	bool idle = tgt_fence_idle(ns);

	ns->round->target->parts++; /* a target does not end before what was removed from it has */
	ns->removing = true;
	ns->removed = done;
	ns->removed_arg = arg;
	if (idle)
		tgt_ns_drained_or_free(ns);
}

int weft_ns_remove(struct weft_subsys *s, uint32_t nsid, void (*done)(void *arg), void *arg,
		   struct weft_err *err)
{
	struct tgt_ns *ns = tgt_ns_find(s, nsid);

	if (!ns)
		return weft_fail(err, -ENOENT, "%s has no namespace %u", s->nqn, nsid);
	if (publish(s, nsid, NULL) < 0)
		return weft_fail(err, -ENOMEM, "out of memory");
	tgt_ana_ns_changed(s, ns->ana_group);
	tgt_ns_changed(s, nsid);
	remove_begin(ns, done, arg);
	return 0;
}

/* --- closing all, with their subsystem ------------------------------------------------------------- */

struct close_all {
	unsigned pending;
	void (*closed)(void *arg);
	void *arg;
};

static void one_closed(void *arg)
{
	struct close_all *all = arg;

	if (--all->pending)
		return;
	all->closed(all->arg);
	free(all);
}

void tgt_ns_close_all(struct weft_subsys *s, void (*closed)(void *arg), void *arg)
{
	struct ns_table *table = table_of(s);
	struct close_all *all = calloc(1, sizeof(*all));

	assert(all);
	*all = (struct close_all){ .pending = 1, .closed = closed, .arg = arg };
	for (uint32_t i = 0; table && i < table->nsid_max; i++) {
		if (!table->ns[i])
			continue;
		all->pending++;
		remove_begin(table->ns[i], one_closed, all);
	}
	one_closed(all);
}

/* --- resizing -------------------------------------------------------------------------------------- */

struct resize {
	struct tgt_fence fence;
	struct weft_target *target;
	uint64_t size;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
};

static void resize_alone(struct tgt_fence *fence)
{
	struct resize *resize = container_of(fence, struct resize, fence);
	struct tgt_ns *ns = fence->ns;
	struct weft_err err = { 0 };
	int rc;

	if (!ns || ns->removing)
		rc = weft_fail(&err, -ENOENT, "the namespace is being removed");
	else
		rc = weft_backend_resize(ns->be, resize->size, &err);
	if (rc == 0) {
		atomic_store(&ns->blocks, ns->be->size >> ns->lba_shift);
		tgt_ns_changed(ns->subsys, ns->nsid);
	}
	if (ns)
		tgt_fence_release(ns, resize->target);
	resize->done(resize->arg, rc, &err);
	free(resize);
}

int weft_ns_resize(struct weft_subsys *s, uint32_t nsid, uint64_t size,
		   void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		   struct weft_err *err)
{
	struct tgt_ns *ns = tgt_ns_find(s, nsid);
	struct resize *resize;

	if (!ns)
		return weft_fail(err, -ENOENT, "%s has no namespace %u", s->nqn, nsid);
	if (!size || size & ((1u << ns->lba_shift) - 1))
		return weft_fail(err, -EINVAL,
				 "size %llu: expected a multiple of the block, %u bytes",
				 (unsigned long long)size, 1u << ns->lba_shift);
	if (!ns->be->ops->resize)
		return weft_fail(err, -EOPNOTSUPP, "%s cannot be resized", ns->be->spec);
	resize = calloc(1, sizeof(*resize));
	if (!resize)
		return weft_fail(err, -ENOMEM, "out of memory");
	*resize = (struct resize){
		.fence = { .ns = ns,
			   .hold = NS_HOLD_ALL,
			   .reactor = s->target->home,
			   .got = resize_alone },
		.target = s->target,
		.size = size,
		.done = done,
		.arg = arg,
	};
	tgt_fence_acquire(&resize->fence, s->target);
	return 0;
}
