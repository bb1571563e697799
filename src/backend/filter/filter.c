/* filter.c - what all filters have in common: the stack, and all ops that are not io.
 *
 * Invariant: every backend of a stack has the size and the spec of the storage below. */
#include "backend/filter/filter.h"

#include <stdlib.h>

static int filter_descriptor(struct weft_backend *be)
{
	return be->next->ops->descriptor(be->next);
}

static uint64_t filter_used(struct weft_backend *be)
{
	return be->next->ops->used(be->next);
}

static int filter_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	return be->next->ops->resize(be->next, size, err);
}

static bool filter_node_active(struct weft_backend *be, unsigned node)
{
	return be->next->ops->node_active(be->next, node);
}

static int filter_lock_as(struct weft_backend *be, uint64_t as, uint64_t *other)
{
	return be->next->ops->lock_as(be->next, as, other);
}

static uint64_t filter_identity(struct weft_backend *be)
{
	return be->next->ops->identity(be->next);
}

static void filter_close(struct weft_backend *be)
{
	struct weft_backend *next = be->next;

	assert(be->size == next->size && be->spec == next->spec);
	next->never_served = be->never_served;
	free(container_of(be, struct weft_filter, be));
	weft_backend_close(next);
}

void weft_filter_push(struct weft_filter *filter, struct weft_backend **be,
		      int (*submit)(struct weft_backend *be, struct weft_io *io))
{
	struct weft_backend *next = *be;
	const struct weft_backend_ops *below = next->ops;

	assert(next->size == weft_backend_storage(next)->size);
	filter->ops = (struct weft_backend_ops){
		.type = below->type,
		.descriptor = below->descriptor ? filter_descriptor : NULL,
		.submit = submit,
		.extents = below->extents,
		.used = below->used ? filter_used : NULL,
		.resize = below->resize ? filter_resize : NULL,
		.locks_are_local = below->locks_are_local,
		.node_active = below->node_active ? filter_node_active : NULL,
		.lock_as = below->lock_as ? filter_lock_as : NULL,
		.identity = below->identity ? filter_identity : NULL,
		.close = filter_close,
	};
	filter->be = (struct weft_backend){
		.ops = &filter->ops,
		.size = next->size,
		.align = next->align,
		.block_min = next->block_min,
		.clear_max = next->clear_max,
		.read_only = next->read_only,
		.thin = next->thin,
		.created = next->created,
		.never_served = next->never_served,
		.spec = next->spec,
		.next = next,
	};
	*be = &filter->be;
}

/* The lowest first. */
int weft_filter_push_all(struct weft_backend **be, const struct weft_spec *spec,
			 struct weft_err *err)
{
	int rc;

	assert(!(*be)->next);
	rc = weft_error_push(be, spec);
	if (!rc)
		rc = weft_delay_push(be, spec);
	if (!rc)
		return 0;
	(*be)->never_served = true;
	weft_backend_close(*be);
	*be = NULL;
	return weft_spec_fail(spec, err, rc, "out of memory");
}
