/* storage_error.c - an error of storage: the host gets a status, counters grow, the log has a line.
 *
 *   -errno ─┬─▶ status: weft_status_from_errno(), by what storage was asked for, not by the command
 *           ├─▶ counters: of the namespace (ctl status); media errors of the subsystem (SMART)
 *           └─▶ a line in the log, with namespace and errno, rate limited
 *
 * A command may ask storage for several things, of which one fails: the read of a Compare, the
 * write of a Copy.
 *
 * Invariant: every error of storage comes through here, once, while the command is at work. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "target/io/io.h"

static const char *const verbs[] = {
	[WEFT_IO_READ] = "read",         [WEFT_IO_WRITE] = "write",
	[WEFT_IO_FLUSH] = "flush",       [WEFT_IO_ZERO] = "write of zeroes",
	[WEFT_IO_TRIM] = "deallocation", [WEFT_IO_EXTENTS] = "search for extents",
};

static void log_storage_error(const struct tgt_ns *ns, const struct weft_io *io, int rc)
{
	char range[64] = "";

	if (io->length)
		snprintf(range, sizeof(range), " of %llu bytes at %llu",
			 (unsigned long long)io->length, (unsigned long long)io->offset);
	weft_storage_log(WEFT_LOG_ERROR, "%s: namespace %u, %s: %s%s failed: %s (errno %d)",
			 ns->subsys->nqn, ns->nsid, ns->be->spec, verbs[io->kind], range,
			 strerror(-rc), -rc);
}

uint16_t tgt_io_failed(struct weft_req *req, int rc)
{
	const struct weft_io *io = &tgt_req(req)->io;
	bool reading = io->kind == WEFT_IO_READ || io->kind == WEFT_IO_EXTENTS;
	uint16_t sc = weft_status_from_errno(rc, reading);

	assert(rc < 0 && tgt_ns_at_work(req));
	tgt_stats_error(req, reading, (sc & 0x7ff) >> 8 == NVME_SCT_MEDIA);
	log_storage_error(tgt_ns_at_work(req), io, rc);
	return sc;
}
