/* null.c - no storage: writes are discarded, reads are zeroes. Measures everything but the disk. */
#include <stdlib.h>
#include <string.h>

#include "backend/internal.h"

static int null_submit(struct weft_backend *be, struct weft_io *io)
{
	if (io->kind == WEFT_IO_READ)
		memset(io->buf, 0, io->length);
	io->done(io, 0);
	return 0;
}

static int null_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	return 0;
}

static void null_close(struct weft_backend *be)
{
	weft_backend_fini(be);
	free(be);
}

static int null_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	struct weft_backend *null = calloc(1, sizeof(*null));
	int rc;

	if (!null)
		return weft_spec_fail(spec, err, -ENOMEM, "out of memory");
	rc = weft_backend_init(null, spec, spec->size, WEFT_BLOCK_MIN, err);
	if (rc < 0) {
		null_close(null);
		return rc;
	}
	*be = null;
	return 0;
}

const struct weft_backend_ops weft_null_ops = {
	.type = "null",
	.usage = "null:SIZE",
	.arg_is_size = true,
	.open = null_open,
	.submit = null_submit,
	.resize = null_resize,
	.close = null_close,
};
