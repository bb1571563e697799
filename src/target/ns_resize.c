/* ns_resize.c - resize a namespace while all its commands wait.
 *
 *   quiesce against all ─▶ resize the storage, offloaded ─▶ notify hosts ─▶ end quiesce ─▶ answer
 *
 * A file system may take seconds over it. The namespace's commands wait that long; the control
 * reactor does not, so every host's Keep Alive and Connect are answered.
 *
 * Invariant: the namespace stays quiesced while the storage changes, so a removal waits for it. */
#include <errno.h>
#include <stdlib.h>

#include "base/size.h"
#include "reactor/offload.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"

struct resize {
	struct tgt_ns_quiesce quiesce;
	struct weft_target *target;
	uint64_t size;
	bool shrink; /* the new size may be smaller */
	struct weft_offload offload;
	struct weft_backend_resize storage;
	struct weft_err err;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
};

static void resize_finish(struct resize *resize, int rc)
{
	assert_on_control(resize->target);
	resize->done(resize->arg, rc, &resize->err);
	free(resize);
}

static int resize_storage(struct weft_offload *offload)
{
	struct resize *resize = container_of(offload, struct resize, offload);

	return weft_backend_resize_run(&resize->storage, &resize->err);
}

static void notify_resized(struct tgt_ns *ns, int rc)
{
	if (rc < 0)
		tgt_health_command_failed(ns->subsys, ns->nsid);
	else {
		tgt_ns_notify_changed(ns->subsys, ns->nsid);
		tgt_cluster_ns_changed(ns->subsys);
	}
}

/* A namespace that is being removed may have outlived its subsystem. */
static void resize_storage_done(struct weft_offload *offload, int rc)
{
	struct resize *resize = container_of(offload, struct resize, offload);
	struct tgt_ns *ns = resize->quiesce.ns;

	assert(ns->quiesced_by == &resize->quiesce);
	weft_backend_resize_end(&resize->storage, !rc);
	assert(!(ns->be->size & ((1u << ns->lba_shift) - 1)));
	atomic_store(&ns->blocks, ns->be->size >> ns->lba_shift);
	if (!ns->removing)
		notify_resized(ns, rc);
	else if (!rc)
		rc = weft_fail(&resize->err, -ENOENT,
			       "the namespace was removed meanwhile; its storage has the new size");
	tgt_ns_quiesce_end(ns, resize->target);
	resize_finish(resize, rc);
}

/* Data that is cut off is lost, so shrinking must be asked for. Whether a resize shrinks is known
 * when the ones before it are done, not when it is asked for. */
static int check_shrink(const struct tgt_ns *ns, uint64_t size, bool shrink, struct weft_err *err)
{
	char has[32], wanted[32];

	if (shrink || size >= ns->be->size)
		return 0;
	weft_size_format(ns->be->size, has, sizeof(has));
	weft_size_format(size, wanted, sizeof(wanted));
	return weft_fail(err, -EINVAL, "%s namespace %u has %s; shrink=true would cut it to %s",
			 ns->subsys->nqn, ns->nsid, has, wanted);
}

static void resize_quiesced(struct tgt_ns_quiesce *quiesce)
{
	struct resize *resize = container_of(quiesce, struct resize, quiesce);
	struct tgt_ns *ns = quiesce->ns;
	int rc;

	assert(!ns || ns->quiesced_by == quiesce);
	if (!ns || ns->removing)
		rc = weft_fail(&resize->err, -ENOENT, "the namespace is being removed");
	else
		rc = check_shrink(ns, resize->size, resize->shrink, &resize->err);
	if (!rc)
		rc = weft_backend_resize_begin(&resize->storage, ns->be, resize->size,
					       &resize->err);
	if (!rc) {
		weft_offload_start(&resize->offload, resize->target->control, resize_storage,
				   resize_storage_done);
		return;
	}
	if (ns)
		tgt_ns_quiesce_end(ns, resize->target);
	resize_finish(resize, rc);
}

int weft_ns_resize(struct weft_subsys *s, uint32_t nsid, uint64_t size, bool shrink,
		   void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		   struct weft_err *err)
{
	struct tgt_ns *ns = tgt_ns_find(s, nsid);
	struct resize *resize;

	assert_on_control(s->target);
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
		.quiesce = { .ns = ns,
			     .level = NS_QUIESCE_ALL,
			     .reactor = s->target->control,
			     .quiesced = resize_quiesced },
		.target = s->target,
		.size = size,
		.shrink = shrink,
		.done = done,
		.arg = arg,
	};
	tgt_ns_quiesce_begin(&resize->quiesce, s->target);
	return 0;
}
