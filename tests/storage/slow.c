/* slow.c - storage that answers when the harness says so.
 *
 * Data moves when an operation ends, not when it starts: a buffer that was given back too early, or
 * a namespace closed under an operation, is touched then and found by the address sanitizer. */
#include "storage/slow.h"

#include <stdlib.h>
#include <string.h>

#include "must.h"

struct slow {
	struct weft_backend be;
	unsigned under_way;
	char bytes[SLOW_BYTES_MAX];
};

static struct weft_list waiting = { &waiting, &waiting }; /* weft_io.op.link */
static unsigned refusals;

static struct slow *slow_of(struct weft_backend *be)
{
	return container_of(be, struct slow, be);
}

static void check_io(const struct weft_backend *be, const struct weft_io *io)
{
	must(io->offset <= be->size && io->length <= be->size - io->offset);
	must(io->offset % 512 == 0 && io->length % 512 == 0);
	if (io->kind == WEFT_IO_READ || io->kind == WEFT_IO_WRITE)
		must(io->buf && (uintptr_t)io->buf % be->align == 0);
	must(!be->read_only || !weft_io_changes(io));
}

static int slow_submit(struct weft_backend *be, struct weft_io *io)
{
	check_io(be, io);
	if (refusals) {
		refusals--;
		return -EAGAIN;
	}
	slow_of(be)->under_way++;
	io->op.reactor = weft_reactor_self();
	must(io->op.reactor);
	weft_list_push(&waiting, &io->op.link);
	return 0;
}

static void move_data(struct slow *slow, struct weft_io *io)
{
	char *at = slow->bytes + io->offset;

	check_io(&slow->be, io); /* nobody may have shrunk it meanwhile */
	if (io->kind == WEFT_IO_READ)
		memcpy(io->buf, at, io->length);
	else if (io->kind == WEFT_IO_WRITE)
		memcpy(at, io->buf, io->length);
	else if (io->kind != WEFT_IO_FLUSH)
		memset(at, 0, io->length);
}

/* On the reactor that asked. */
static void complete_io(struct weft_msg *msg)
{
	struct weft_io *io = container_of(msg, struct weft_io, op.mail);
	struct slow *slow = slow_of(io->be);

	if (io->op.res == 0)
		move_data(slow, io);
	slow->under_way--;
	io->done(io, io->op.res);
}

unsigned slow_end(unsigned n, int rc)
{
	struct weft_list *link;
	unsigned ended = 0;

	for (; ended < n && (link = weft_list_pop(&waiting)); ended++) {
		struct weft_io *io = container_of(link, struct weft_io, op.link);

		io->op.res = rc;
		io->op.mail.fn = complete_io;
		weft_reactor_post(io->op.reactor, &io->op.mail);
	}
	return ended;
}

void slow_refuse(unsigned n)
{
	refusals = n;
}

void slow_clear(struct weft_backend *be)
{
	memset(slow_of(be)->bytes, 0, be->size);
}

static int slow_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	must(!slow_of(be)->under_way);
	if (size > SLOW_BYTES_MAX)
		return weft_fail(err, -ENOSPC, "too large");
	if (size > be->size)
		memset(slow_of(be)->bytes + be->size, 0, size - be->size);
	return 0;
}

static void slow_close(struct weft_backend *be)
{
	must(!slow_of(be)->under_way);
	free(be->spec);
	free(slow_of(be));
}

static const struct weft_backend_ops slow_ops = {
	.type = "null", /* what its SPEC says, for a resize */
	.submit = slow_submit,
	.resize = slow_resize,
	.close = slow_close,
};

struct weft_backend *slow_open(void)
{
	struct slow *slow = calloc(1, sizeof(*slow));

	must(slow);
	slow->be = (struct weft_backend){
		.ops = &slow_ops,
		.size = SLOW_BYTES,
		.align = SLOW_ALIGN,
		.block_min = 512,
		.spec = strdup("null:64K"),
	};
	must(slow->be.spec);
	return &slow->be;
}
