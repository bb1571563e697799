/* ns_resize.c - a namespace grows or shrinks: fence against all ─▶ change ─▶ let go ─▶ tell hosts. */
#include <errno.h>
#include <stdlib.h>

#include "target/admin/admin.h"

struct resize {
	struct tgt_fence fence;
	struct weft_target *target;
	uint64_t size;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
};

static int change(struct tgt_ns *ns, uint64_t size, struct weft_err *err)
{
	int rc = weft_backend_resize(ns->be, size, err);

	if (rc < 0) {
		tgt_health_failed(ns->subsys, ns->nsid);
		return rc;
	}
	atomic_store(&ns->blocks, ns->be->size >> ns->lba_shift);
	tgt_ns_changed(ns->subsys, ns->nsid);
	return 0;
}

static void resize_alone(struct tgt_fence *fence)
{
	struct resize *resize = container_of(fence, struct resize, fence);
	struct tgt_ns *ns = fence->ns;
	struct weft_err err = { 0 };
	int rc;

	if (!ns || ns->removing)
		rc = weft_fail(&err, -ENOENT, "the namespace is being removed");
	else
		rc = change(ns, resize->size, &err);
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
