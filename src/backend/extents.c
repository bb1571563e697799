/* extents.c - which parts (extents) of a range are allocated, as the file system knows it.
 *
 *   where is the next data? ─▶ where does it end? ─▶ an extent ─▶ on from there
 *        └─ none in the range ─────────────────────▶ the range is covered
 *
 * Extents are rounded outwards to pages: a block with any storage counts as allocated. One search
 * is bounded by a number of seeks and by the room for results; the caller continues behind what was
 * covered.
 *
 * Invariant: blocks of a write that completed before the search are in an extent. Those of a write
 * that comes meanwhile may be. */
#include <sys/stat.h>
#include <unistd.h>

#include "backend/internal.h"

#define PAGE 4096ull

/* There is no data up to the end of the file, which may have been truncated: lost data is not a
 * hole. */
static int no_data(int fd, uint64_t end, uint64_t *data)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*data = end;
	return (uint64_t)st.st_size < end ? -EIO : 0;
}

/* The next data from @at on; @end: none. */
static int next_data(int fd, uint64_t at, uint64_t end, uint64_t *data)
{
	off_t found = lseek(fd, (off_t)at, SEEK_DATA);

	if (found < 0)
		return errno == ENXIO ? no_data(fd, end, data) : -errno;
	*data = (uint64_t)found & ~(PAGE - 1);
	if (*data < at)
		*data = at;
	if (*data > end)
		*data = end;
	return 0;
}

/* A hole that was made just now counts as data, so that the search advances. */
static uint64_t rounded_end(uint64_t data, uint64_t data_end, uint64_t end)
{
	uint64_t up = (data_end + PAGE - 1) & ~(PAGE - 1);

	if (data_end <= data)
		up = (data & ~(PAGE - 1)) + PAGE;
	return up < end ? up : end;
}

static bool follows(const struct weft_extent *last, uint64_t at)
{
	return last->offset + last->length == at;
}

int weft_extents_search(struct weft_io *io, unsigned seeks,
			int (*data_end)(struct weft_backend *be, uint64_t at, uint64_t *end))
{
	uint64_t at = io->offset, end = io->offset + io->length, data = at, until;
	struct weft_extent *found = io->buf;
	unsigned n = 0;
	bool joins;
	int rc;

	assert(seeks && io->extents);
	while (at < end && seeks--) {
		rc = next_data(weft_backend_descriptor(io->be), at, end, &data);
		if (rc < 0)
			return rc;
		at = until = data;
		joins = n && follows(&found[n - 1], data);
		if (data == end || (!joins && n == io->extents))
			break;
		until = end;
		rc = data_end(io->be, data, &until);
		if (rc < 0)
			return rc;
		at = rounded_end(data, until, end);
		if (joins)
			found[n - 1].length += at - data;
		else
			found[n++] = (struct weft_extent){ data, at - data };
	}
	assert(n <= io->extents && at <= end);
	io->extents = n;
	io->covered = at - io->offset;
	return 0;
}
