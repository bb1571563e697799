/* disk.c - an operation is carried out some time after it was submitted, and reported some time
 * after that: now and then so late that whoever asked for it has given up long ago. */
#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include "world.h"

struct work {
	struct sim_event event;
	struct weft_msg done;
	struct weft_io *io;
	struct weft_reactor *reactor;
	struct weft_list link;
};

static char bytes[DISK_BLOCKS * DISK_BLOCK];
static unsigned busy;

void disk_begin(void)
{
	must(!busy);
	memset(bytes, 0, sizeof(bytes));
}

const void *disk_at(unsigned block)
{
	return bytes + block * DISK_BLOCK;
}

unsigned disk_busy(void)
{
	return busy;
}

static void carry_out(const struct weft_io *io)
{
	switch (io->kind) {
	case WEFT_IO_READ:
		memcpy(io->buf, bytes + io->offset, io->length);
		break;
	case WEFT_IO_WRITE:
		memcpy(bytes + io->offset, io->buf, io->length);
		break;
	case WEFT_IO_ZERO:
		memset(bytes + io->offset, 0, io->length);
		break;
	default:
		break;
	}
}

static void report(struct weft_msg *msg)
{
	struct work *work = container_of(msg, struct work, done);
	struct weft_io *io = work->io;

	free(work);
	busy--;
	io->done(io, 0);
}

static void due(struct sim_event *event)
{
	struct work *work = container_of(event, struct work, event);

	carry_out(work->io);
	work->done.fn = report;
	weft_reactor_post(work->reactor, &work->done);
}

static uint64_t how_long(void)
{
	switch (world_random(100)) {
	case 0:
		return world_random(3000 * MS);
	case 1:
	case 2:
	case 3:
		return world_random(50 * MS);
	default:
		return 5 * US + world_random(200 * US);
	}
}

static int disk_submit(struct weft_backend *be, struct weft_io *io)
{
	struct work *work = calloc(1, sizeof(*work));

	must(work && io->offset + io->length <= sizeof(bytes));
	work->io = io;
	work->reactor = weft_reactor_self();
	work->event.fn = due;
	busy++;
	world_at(&work->event, how_long());
	return 0;
}

static void disk_close(struct weft_backend *be)
{
	free(be->spec);
	free(be);
}

static const struct weft_backend_ops disk_ops = {
	.type = "sim",
	.submit = disk_submit,
	.close = disk_close,
};

struct weft_backend *disk_open(void)
{
	struct weft_backend *be = calloc(1, sizeof(*be));

	must(be);
	be->ops = &disk_ops;
	be->size = sizeof(bytes);
	be->align = 1;
	be->block_min = 512;
	be->spec = strdup("sim:disk");
	return be;
}
