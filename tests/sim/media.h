/* media.h - what a disk holds: in its cache, where everybody sees it, and for good. */
#ifndef SIM_MEDIA_H
#define SIM_MEDIA_H

#include "backend/backend.h"

enum { DISK_BLOCK = 4096, DISK_BLOCKS = 64, DISK_BYTES = DISK_BLOCKS * DISK_BLOCK };

struct media {
	char cache[DISK_BYTES], durable[DISK_BYTES];
};

void media_carry_out(struct media *m, const struct weft_io *io);
/* Of each block, what was not durable is there or not. */
void media_lose_power(struct media *m);

#endif
