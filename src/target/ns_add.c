/* ns_add.c - add a namespace: open ─▶ publish a new table ─▶ notify hosts.
 *
 * Invariant: a published table never changes; the old one is freed after a barrier (barrier.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/uuid.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"
#include "target/resv/resv.h"

/* --- the table -------------------------------------------------------------------------------- */

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

	assert(nsid - 1 < WEFT_NSID_MAX);
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

int tgt_ns_publish(struct weft_subsys *s, uint32_t nsid, struct tgt_ns *ns)
{
	struct ns_table *table = table_with(s, nsid, ns), *old = table_of(s);
	struct tgt_barrier *barrier = tgt_barrier_new(s->target);

	assert_on_control(s->target);
	assert(!ns != !tgt_ns_find(s, nsid)); /* a new one where there is none, or the end of one */
	if (!table || !barrier) {
		free(table);
		free(barrier);
		return -ENOMEM;
	}
	atomic_store_explicit(&s->table, table, memory_order_release);
	tgt_free_after_barrier(s->target, barrier, old);
	return 0;
}

/* --- adding ----------------------------------------------------------------------------------- */

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
	size_t size = sizeof(struct tgt_ns) + s->target->npoll_groups * sizeof(struct ns_local);
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
	weft_list_init(&ns->quiesces);
	for (unsigned i = 0; i < s->target->npoll_groups; i++)
		weft_list_init(&ns->local[i].waiting);
	ns->barrier = tgt_barrier_new(s->target);
	ns->pair_buffer = weft_pages_alloc(TGT_PAIR_BYTES(ns)); /* resident when it is used */
	if (!ns->barrier || !ns->pair_buffer) {
		tgt_ns_free(ns);
		return NULL;
	}
	ns->barrier->ns = ns;
	return ns;
}

void tgt_ns_free(struct tgt_ns *ns)
{
	assert(!ns->quiesced_by && weft_list_empty(&ns->quiesces));
	weft_pages_free(ns->pair_buffer, TGT_PAIR_BYTES(ns));
	free(atomic_load(&ns->resv));
	free(ns->barrier);
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

static int lock_identity_and_publish(struct tgt_ns *ns, struct weft_err *err)
{
	int rc = tgt_cluster_lock_identity(ns, err);

	if (rc < 0)
		return rc;
	rc = tgt_ns_publish(ns->subsys, ns->nsid, ns);
	if (rc < 0)
		tgt_cluster_unlock_identity(ns);
	return rc;
}

int weft_ns_add(struct weft_subsys *s, const struct weft_ns_options *options,
		struct weft_backend *be, uint32_t *nsid_out, struct weft_err *err)
{
	uint32_t nsid = options->nsid ? options->nsid : lowest_free_nsid(s);
	int block = choose_block(options->block, be, err);
	struct tgt_ns *ns;
	int rc;

	assert_on_control(s->target);
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
	assert(ns->ana_group <= WEFT_ANA_GROUP_MAX); /* it is an index of every command */
	rc = choose_uuid(ns, options, err);
	if (rc == 0)
		rc = load_reservation(ns, err);
	if (rc == 0)
		rc = lock_identity_and_publish(ns, err);
	if (rc < 0) {
		tgt_ns_free(ns);
		return rc;
	}
	tgt_ana_ns_changed(s, ns->ana_group);
	tgt_ns_notify_changed(s, nsid);
	tgt_cluster_ns_changed(s);
	*nsid_out = nsid;
	return 0;
}

void weft_subsys_keep_storage(struct weft_subsys *s)
{
	assert_on_control(s->target);
	for (uint32_t nsid = 1; nsid <= nsid_max(s); nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns)
			ns->be->never_served = false;
	}
}
