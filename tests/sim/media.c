/* media.c - what a disk holds. A flush makes all of it durable, FUA what it wrote. */
#include "media.h"

#include <string.h>

#include "scheduler.h"

static void write_to(struct media *m, const struct weft_io *io)
{
	if (io->kind == WEFT_IO_WRITE)
		memcpy(m->cache + io->offset, io->buf, io->length);
	else
		memset(m->cache + io->offset, 0, io->length);
	if (io->flags & WEFT_IO_FUA)
		memcpy(m->durable + io->offset, m->cache + io->offset, io->length);
}

void media_carry_out(struct media *m, const struct weft_io *io)
{
	switch (io->kind) {
	case WEFT_IO_READ:
		memcpy(io->buf, m->cache + io->offset, io->length);
		break;
	case WEFT_IO_WRITE:
	case WEFT_IO_ZERO:
		write_to(m, io);
		break;
	case WEFT_IO_FLUSH:
		memcpy(m->durable, m->cache, sizeof(m->durable));
		break;
	case WEFT_IO_TRIM:
		break;
	case WEFT_IO_EXTENTS: /* no disk of the simulator takes it */
		must(false);
		break;
	}
}

void media_lose_power(struct media *m)
{
	for (unsigned i = 0; i < DISK_BLOCKS; i++) {
		char *cached = m->cache + i * DISK_BLOCK, *kept = m->durable + i * DISK_BLOCK;

		if (sim_chance(50))
			memcpy(kept, cached, DISK_BLOCK);
		else
			memcpy(cached, kept, DISK_BLOCK);
	}
}
