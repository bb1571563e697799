/* io.c - NBD commands as NVMe commands.
 *
 *   read, write   Read, Write; FUA as it is
 *   flush         Flush
 *   trim          Dataset Management, deallocate; with FUA, a Flush after it
 *   write zeroes  Write Zeroes, with DEAC unless the client forbids holes
 *   block status  Get LBA Status; where it is not supported, all is allocated */
#include <errno.h>

#include "plugin.h"

#define EXTENTS 256 /* of one answer */

static int check_aligned(const struct export *export, uint32_t count, uint64_t offset)
{
	uint32_t block = export->info.block_size;

	if (count % block == 0 && offset % block == 0)
		return 0;
	nbdkit_error("%u bytes at %llu: the namespace has blocks of %u bytes; with "
		     "--filter=blocksize nbdkit takes any size",
		     count, (unsigned long long)offset, block);
	nbdkit_set_error(EINVAL);
	return -1;
}

static int run_cmd(struct export *export, struct weft_cmd *cmd)
{
	struct weft_err err = {};
	int rc = weft_volume_run(export->volume, cmd, &err);

	return rc < 0 ? plugin_fail(rc, &err) : 0;
}

static int run_cmd_range(struct export *export, struct weft_cmd *cmd, uint32_t count,
			 uint64_t offset)
{
	if (check_aligned(export, count, offset) < 0)
		return -1;
	cmd->length = count;
	cmd->offset = offset;
	return run_cmd(export, cmd);
}

static unsigned nbd_fua_flag(uint32_t flags)
{
	return flags & NBDKIT_FLAG_FUA ? WEFT_FUA : 0;
}

int io_read(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	const struct iovec iov = { buf, count };
	struct weft_cmd cmd = { .op = WEFT_READ, .iov = &iov, .iovcnt = 1 };

	return run_cmd_range(handle, &cmd, count, offset);
}

int io_write(void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	const struct iovec iov = { (void *)buf, count };
	struct weft_cmd cmd = {
		.op = WEFT_WRITE, .flags = nbd_fua_flag(flags), .iov = &iov, .iovcnt = 1
	};

	return run_cmd_range(handle, &cmd, count, offset);
}

int io_flush(void *handle, uint32_t flags)
{
	struct export *export = handle;
	unsigned flush_reported = export->flush_reported;
	struct weft_err err = {};
	int rc = weft_volume_flush(export->volume, &flush_reported, &err);

	export->flush_reported = flush_reported;
	return rc < 0 ? plugin_fail(rc, &err) : 0;
}

int io_can_trim(void *handle)
{
	return weft_volume_conn_info(plugin_conn)->can_trim;
}

int io_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct weft_cmd cmd = { .op = WEFT_TRIM };

	if (run_cmd_range(handle, &cmd, count, offset) < 0)
		return -1;
	return nbd_fua_flag(flags) ? io_flush(handle, 0) : 0;
}

/* If this is false, nbdkit writes the zeroes itself. */
int io_can_zero(void *handle)
{
	return weft_volume_conn_info(plugin_conn)->can_zero;
}

/* Write Zeroes is one small command for any length, faster than writing the zeroes. If the
 * controller has no such command, nbdkit refuses the client's fast zero. */
int io_can_fast_zero(void *handle)
{
	return 1;
}

int io_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct weft_cmd cmd = { .op = WEFT_ZERO, .flags = nbd_fua_flag(flags) };

	if (flags & NBDKIT_FLAG_MAY_TRIM)
		cmd.flags |= WEFT_UNMAP;
	return run_cmd_range(handle, &cmd, count, offset);
}

/* A client may ask about any bytes; the answer is about the blocks that contain them, as far as one
 * Get LBA Status goes. */
int io_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	       struct nbdkit_extents *extents)
{
	struct export *export = handle;
	uint32_t block = export->info.block_size;
	uint64_t at = offset - offset % block, end = offset + count;
	struct weft_ns_extent found[EXTENTS];
	unsigned n;

	end += (block - end % block) % block;
	n = weft_volume_extents(export->volume, at, end - at, found, EXTENTS);
	for (unsigned i = 0; i < n; at += found[i++].length)
		if (nbdkit_add_extent(extents, at, found[i].length,
				      found[i].data ? 0 : NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO) <
		    0)
			return -1;
	return 0;
}
