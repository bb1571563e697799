/* byte_io.c - byte I/O on a volume: any offset, any length, an end, as a file has.
 *
 *   read:   [ dropped │ the caller's memory │ dropped ]   one command, edges into scratch memory
 *   write:  [ old     │ the caller's memory │ old     ]   edges read first, then one command
 *
 * Invariant: blocks are locked in volume->write_locks from before their edges are read until they
 * are written. */
#include "volume/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define ZEROES_MAX (128 << 10) /* written at once where there is no Write Zeroes */
#define ASKS_MAX   4096        /* for data or a hole: a target may report a little at a time */
#define EXTENTS    64

uint64_t weft_volume_size(struct weft_volume *volume)
{
	struct weft_ns_info info;

	weft_volume_info(volume, &info);
	return info.size;
}

/* How much of @length at @offset the namespace has. */
static uint64_t clamp_to_size(struct weft_volume *volume, uint64_t length, uint64_t offset)
{
	uint64_t size = weft_volume_size(volume);

	if (offset >= size)
		return 0;
	return length < size - offset ? length : size - offset;
}

static int run_blocks(struct weft_volume *volume, enum weft_op_code op, unsigned flags,
		      const struct weft_block_span *span, const struct iovec *iov, int iovcnt)
{
	struct weft_cmd cmd = {
		.op = op,
		.flags = flags,
		.offset = span->start,
		.length = span->length,
		.iov = iov,
		.iovcnt = iovcnt,
	};

	assert(!((span->start | span->length) & (volume->info.block_size - 1)));
	return weft_volume_run(volume, &cmd, NULL);
}

/* @buf with what surrounds it in its blocks. Returns the number of pieces. */
static int iov_with_edges(struct iovec iov[3], void *head, void *buf, size_t length, void *tail,
			  const struct weft_block_span *span)
{
	int n = 0;

	if (span->head)
		iov[n++] = (struct iovec){ head, span->head };
	iov[n++] = (struct iovec){ buf, length };
	if (span->tail)
		iov[n++] = (struct iovec){ tail, span->tail };
	return n;
}

ssize_t weft_volume_read(struct weft_volume *volume, void *buf, size_t length, uint64_t offset)
{
	_cleanup_(weft_freep) uint8_t *dropped = NULL;
	struct weft_block_span span;
	struct iovec iov[3];
	int rc;

	length = clamp_to_size(volume, length, offset);
	if (!length)
		return 0;
	span = weft_block_span_of(offset, length, volume->info.block_size);
	if (!weft_block_span_is_aligned(&span)) {
		dropped = malloc(volume->info.block_size);
		if (!dropped)
			return -ENOMEM;
	}
	rc = iov_with_edges(iov, dropped, buf, length, dropped, &span);
	rc = run_blocks(volume, WEFT_READ, 0, &span, iov, rc);
	return rc < 0 ? rc : (ssize_t)length;
}

static int read_block(struct weft_volume *volume, uint8_t *buf, uint64_t offset)
{
	const struct weft_block_span span = { .start = offset, .length = volume->info.block_size };
	const struct iovec iov = { buf, volume->info.block_size };

	return run_blocks(volume, WEFT_READ, 0, &span, &iov, 1);
}

/* The first block into @edges, the last one behind it, where they are not overwritten whole. */
static int read_edges(struct weft_volume *volume, const struct weft_block_span *span,
		      uint8_t *edges)
{
	uint64_t last = span->start + span->length - volume->info.block_size;
	int rc = 0;

	assert(!weft_block_span_is_aligned(span) && last >= span->start);
	if (span->head)
		rc = read_block(volume, edges, span->start);
	if (!rc && span->tail)
		rc = read_block(volume, edges + volume->info.block_size, last);
	return rc;
}

static int write_unaligned(struct weft_volume *volume, const struct weft_block_span *span,
			   const void *buf, size_t length, unsigned flags)
{
	_cleanup_(weft_freep) uint8_t *edges = malloc(2 * (size_t)volume->info.block_size);
	struct iovec iov[3];
	int rc, n;

	if (!edges)
		return -ENOMEM;
	rc = read_edges(volume, span, edges);
	if (rc < 0)
		return rc;
	n = iov_with_edges(iov, edges, (void *)buf, length,
			   edges + 2 * (size_t)volume->info.block_size - span->tail, span);
	return run_blocks(volume, WEFT_WRITE, flags, span, iov, n);
}

ssize_t weft_volume_write(struct weft_volume *volume, const void *buf, size_t length,
			  uint64_t offset, unsigned flags)
{
	size_t fits = clamp_to_size(volume, length, offset);
	struct iovec iov = { (void *)buf, fits };
	struct weft_range_lock range;
	struct weft_block_span span;
	int rc;

	if (!fits)
		return length ? -ENOSPC : 0;
	span = weft_block_span_of(offset, fits, volume->info.block_size);
	weft_range_lock_acquire(&volume->write_locks, &range, span.start, span.length);
	if (weft_block_span_is_aligned(&span))
		rc = run_blocks(volume, WEFT_WRITE, flags, &span, &iov, 1);
	else
		rc = write_unaligned(volume, &span, buf, fits, flags);
	weft_range_lock_release(&volume->write_locks, &range);
	return rc < 0 ? rc : (ssize_t)fits;
}

/* Zeroes as data. */
static int write_zero_data(struct weft_volume *volume, uint64_t length, uint64_t offset,
			   unsigned flags)
{
	_cleanup_(weft_freep) void *zeroes = NULL;
	uint64_t end = offset + length;
	ssize_t done = 0;

	if (!length)
		return 0;
	zeroes = calloc(1, length < ZEROES_MAX ? length : ZEROES_MAX);
	if (!zeroes)
		return -ENOMEM;
	for (; done >= 0 && offset<end; offset += done> 0 ? (uint64_t)done : 0) {
		length = end - offset < ZEROES_MAX ? end - offset : ZEROES_MAX;
		done = weft_volume_write(volume, zeroes, length, offset, flags);
	}
	return done < 0 ? (int)done : 0;
}

static int zero_blocks(struct weft_volume *volume, const struct weft_block_span *span,
		       unsigned flags)
{
	struct weft_range_lock range;
	int rc;

	assert(weft_block_span_is_aligned(span));
	if (!volume->can_zero)
		return write_zero_data(volume, span->length, span->start, flags & WEFT_FUA);
	weft_range_lock_acquire(&volume->write_locks, &range, span->start, span->length);
	rc = run_blocks(volume, WEFT_ZERO, flags, span, NULL, 0);
	weft_range_lock_release(&volume->write_locks, &range);
	return rc;
}

int weft_volume_zero(struct weft_volume *volume, uint64_t length, uint64_t offset, unsigned flags)
{
	uint64_t fits = clamp_to_size(volume, length, offset), end = offset + fits;
	uint64_t mask = volume->info.block_size - 1, first, last;
	struct weft_block_span whole;
	int rc;

	if (!fits) /* behind the end, where a sum may wrap */
		return 0;
	first = (offset + mask) & ~mask;
	last = end & ~mask;
	if (last <= first) /* no block is covered whole */
		return write_zero_data(volume, end - offset, offset, flags & WEFT_FUA);
	whole = weft_block_span_of(first, last - first, volume->info.block_size);
	rc = zero_blocks(volume, &whole, flags);
	if (!rc)
		rc = write_zero_data(volume, first - offset, offset, flags & WEFT_FUA);
	if (!rc)
		rc = write_zero_data(volume, end - last, last, flags & WEFT_FUA);
	return rc;
}

/* How far, from @at on, everything is of the other kind, as far as one answer says; false: it ends
 * there. */
static bool skip_extents(struct weft_volume *volume, uint64_t *at, uint64_t end, bool data)
{
	struct weft_ns_extent extents[EXTENTS];
	unsigned n = weft_volume_extents(volume, *at, end - *at, extents, EXTENTS), i = 0;

	for (; i < n && extents[i].data != data; i++)
		*at += extents[i].length;
	return i == n && *at < end;
}

/* After too many requests the rest counts as data, which is never wrong. */
off_t weft_volume_seek(struct weft_volume *volume, uint64_t offset, bool data)
{
	uint64_t size = weft_volume_size(volume), at = offset - offset % volume->info.block_size;
	unsigned asks = 0;

	if (offset >= size)
		return -ENXIO;
	while (asks < ASKS_MAX && skip_extents(volume, &at, size, data))
		asks++;
	if (data && at >= size)
		return -ENXIO;
	if (!data && asks == ASKS_MAX)
		at = size;
	return (off_t)(at < offset ? offset : at);
}
