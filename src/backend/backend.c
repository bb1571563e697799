/* backend.c - the table of backend types, and what opening and resizing mean for all of them.
 *
 * Invariant: @be->size and @be->spec say the same; weft_spec_parse() accepts @be->spec. */
#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include "backend/filter/filter.h"
#include "backend/internal.h"
#include "base/cleanup.h"
#include "base/size.h"

static const struct weft_backend_ops *const types[] = {
	&weft_mem_ops,
	&weft_null_ops,
	&weft_file_ops,
	&weft_block_ops,
};

#define NTYPES (sizeof(types) / sizeof(types[0]))

const struct weft_backend_ops *weft_backend_type(const char *name)
{
	for (size_t i = 0; i < NTYPES; i++)
		if (!strcmp(types[i]->type, name))
			return types[i];
	return NULL;
}

const char *weft_backend_usage(unsigned index)
{
	return index < NTYPES ? types[index]->usage : NULL;
}

static int check_size_fits_block(const struct weft_spec *spec, uint64_t size, uint32_t block,
				 struct weft_err *err)
{
	char text[32];

	weft_size_format(size, text, sizeof(text));
	if (!size)
		return weft_spec_fail(spec, err, -EINVAL, "a size of 0 is too small");
	if (size % block)
		return weft_spec_fail(spec, err, -EINVAL,
				      "a size of %s is not a multiple of the block, %u bytes", text,
				      block);
	return 0;
}

int weft_backend_init(struct weft_backend *be, const struct weft_spec *spec, uint64_t size,
		      uint32_t block_min, struct weft_err *err)
{
	uint32_t block = spec->block ? spec->block : block_min;
	int rc;

	assert(block_min == 512 || block_min == 4096);
	if (block < block_min)
		return weft_spec_fail(spec, err, -EINVAL, "block=%u is too small; it needs %u",
				      block, block_min);
	rc = check_size_fits_block(spec, size, block, err);
	if (rc < 0)
		return rc;
	be->ops = spec->ops;
	be->size = size;
	be->align = 1;
	be->block_min = block_min;
	be->read_only = spec->read_only;
	be->spec = weft_spec_text(spec);
	if (!be->spec)
		return weft_spec_fail(spec, err, -ENOMEM, "out of memory");
	return 0;
}

void weft_backend_fini(struct weft_backend *be)
{
	free(be->spec);
}

int weft_backend_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = spec->ops->open(be, spec, err);

	return rc < 0 ? rc : weft_filter_push_all(be, spec, err);
}

int weft_backend_adopt(struct weft_backend **be, const struct weft_spec *spec, int fd,
		       struct weft_err *err)
{
	int rc;

	if (spec->ops->adopt && fd >= 0) {
		rc = spec->ops->adopt(be, spec, fd, err);
		return rc < 0 ? rc : weft_filter_push_all(be, spec, err);
	}
	weft_closep(&fd);
	if (spec->ops->adopt)
		return weft_spec_fail(spec, err, -EBADF, "its descriptor was not handed over");
	return weft_backend_open(be, spec, err);
}

int weft_backend_descriptor(struct weft_backend *be)
{
	return be->ops->descriptor ? be->ops->descriptor(be) : -1;
}

void weft_backend_close(struct weft_backend *be)
{
	be->ops->close(be);
}

/* A file that was opened without size= gets none: its size is its own. */
static char *spec_text_after_resize(struct weft_spec *spec, uint64_t size)
{
	if (spec->size)
		spec->size = size;
	return weft_spec_text(spec);
}

int weft_backend_resize_begin(struct weft_backend_resize *resize, struct weft_backend *be,
			      uint64_t size, struct weft_err *err)
{
	struct weft_spec spec;
	int rc = weft_spec_parse(be->spec, &spec, err);

	if (!rc)
		rc = check_size_fits_block(&spec, size, be->block_min, err);
	if (rc < 0)
		return rc;
	if (!be->ops->resize)
		return weft_spec_fail(&spec, err, -EOPNOTSUPP, "it cannot be resized");
	*resize = (struct weft_backend_resize){ be, size, spec_text_after_resize(&spec, size) };
	return resize->spec ? 0 : weft_spec_fail(&spec, err, -ENOMEM, "out of memory");
}

int weft_backend_resize_run(const struct weft_backend_resize *resize, struct weft_err *err)
{
	assert(resize->spec && !(resize->size & (resize->be->block_min - 1)));
	return resize->be->ops->resize(resize->be, resize->size, err);
}

void weft_backend_resize_end(struct weft_backend_resize *resize, bool done)
{
	_cleanup_(weft_freep) char *text = take_ptr(&resize->spec);

	assert(text); /* it has begun, and not ended */
	if (!done)
		return;
	free(resize->be->spec);
	for (struct weft_backend *be = resize->be; be; be = be->next) {
		assert(be->size == weft_backend_storage(be)->size);
		be->spec = text;
		be->size = resize->size;
	}
	take_ptr(&text);
}

int weft_backend_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	struct weft_backend_resize resize;
	int rc = weft_backend_resize_begin(&resize, be, size, err);

	if (rc < 0)
		return rc;
	rc = weft_backend_resize_run(&resize, err);
	weft_backend_resize_end(&resize, !rc);
	return rc;
}
