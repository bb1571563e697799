/* byte_io.h - byte I/O on a namespace: any offset, any length, an end, as a file has. */
#ifndef WEFT_VOLUME_BYTE_IO_H
#define WEFT_VOLUME_BYTE_IO_H

#include <stdbool.h>
#include <sys/types.h>

#include "volume/range_lock.h"
#include "volume/volume.h"

struct weft_byte_io {
	struct weft_volume *volume;
	uint32_t block_size;
	bool can_zero;
	struct weft_range_locks write_locks; /* blocks that are being changed */
};

/* Bytes read or written, fewer at the end of the namespace, or -errno. A write that begins there
 * or beyond fails with -ENOSPC. */
ssize_t weft_byte_io_read(struct weft_byte_io *bytes, void *buf, size_t length, uint64_t offset);
ssize_t weft_byte_io_write(struct weft_byte_io *bytes, const void *buf, size_t length,
			   uint64_t offset, unsigned flags);
/* Bytes beyond the end are left out. With WEFT_UNMAP space may be deallocated. */
int weft_byte_io_zero(struct weft_byte_io *bytes, uint64_t length, uint64_t offset, unsigned flags);
/* Where, from @offset on, the next data is, or the next hole: the end of the namespace is one.
 * -ENXIO: there is none, or @offset is beyond the end. */
off_t weft_byte_io_seek(struct weft_byte_io *bytes, uint64_t offset, bool data);

uint64_t weft_byte_io_size(struct weft_byte_io *bytes);

#endif
