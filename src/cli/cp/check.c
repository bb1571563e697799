/* check.c - checks before a byte is written: alignment, sizes, source and destination that are the
 * same; and how the work is divided. */
#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/cp/internal.h"
#include "cli/host_options.h"

#define JOBS_DEFAULT  4
#define DEPTH_DEFAULT 8

/* --- alignment -------------------------------------------------------------------------------- */

static int check_alignment(const struct cp *cp, struct weft_err *err)
{
	const struct cp_endpoint *from = cp->from, *to = cp->to;
	uint64_t length = cp->ask->length;
	int rc = weft_cli_check_multiple(from->option, from->base, from->block, err);

	if (rc == 0)
		rc = weft_cli_check_multiple(to->option, to->base, to->block, err);
	if (rc == 0 && length != WEFT_CLI_ALL)
		rc = weft_cli_check_multiple("--length", length, from->block, err);
	if (rc == 0 && length != WEFT_CLI_ALL && !cp->ask->pad)
		rc = weft_cli_check_multiple("--length", length, to->block, err);
	if (rc == 0)
		rc = weft_cli_check_multiple("--bs", cp->piece, from->block, err);
	return rc == 0 ? weft_cli_check_multiple("--bs", cp->piece, to->block, err) : rc;
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* @what: "read", "written" */
static int beyond(const struct cp_endpoint *end, uint64_t length, const char *what,
		  struct weft_err *err)
{
	return weft_fail(err, -ERANGE,
			 "%s %" PRIu64 " with --length %" PRIu64
			 " goes beyond the end of %s, which has %s: at most %s can be %s there",
			 end->option, end->base, length, end->name,
			 weft_exact_text(end->base + end->size).s, weft_exact_text(end->size).s,
			 what);
}

static int too_large(const struct cp *cp, uint64_t length, struct weft_err *err)
{
	const struct cp_endpoint *from = cp->from, *to = cp->to;

	if (cp->ask->length != WEFT_CLI_ALL)
		return beyond(to, length, "written", err);
	return weft_fail(err, -ENOSPC, "%s has %s and %s has room for %s; nothing was written",
			 from->name, weft_exact_text(length).s, to->name,
			 weft_exact_text(to->size).s);
}

static int check_sizes(const struct cp *cp, struct weft_err *err)
{
	const struct cp_endpoint *from = cp->from, *to = cp->to;

	if (cp->total == CP_UNKNOWN)
		return 0;
	if (from->size != CP_UNKNOWN && cp->total > from->size)
		return from->block > 1 || from->base ?
			       beyond(from, cp->total, "read", err) :
			       weft_fail(err, -ERANGE, "--length %" PRIu64 ": %s has only %s",
					 cp->total, from->name, weft_exact_text(from->size).s);
	if (to->size != CP_UNKNOWN && weft_cp_padded(cp, cp->total) > to->size)
		return too_large(cp, cp->total, err);
	if (cp->total % to->block && !cp->ask->pad)
		return weft_fail(err, -EINVAL,
				 "%s has %s, and %s has blocks of %" PRIu32
				 "; --pad fills up the last one with zeroes",
				 from->name, weft_exact_text(cp->total).s, to->name, to->block);
	return 0;
}

static int check_ends(const struct cp *cp, struct weft_err *err)
{
	if (weft_cp_same_ns(cp->from, cp->to))
		return weft_fail(err, -EINVAL, "%s and %s are the same namespace", cp->from->name,
				 cp->to->name);
	if (weft_cp_same_file(cp->from, cp->to))
		return weft_fail(err, -EINVAL, "%s and %s are the same file", cp->from->name,
				 cp->to->name);
	if (cp->ask->verify && cp->to->is_stream)
		return weft_fail(err, -EINVAL, "%s cannot be read back; leave --verify out",
				 cp->to->name);
	return 0;
}

/* --- how it is divided ------------------------------------------------------------------------ */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* More threads than pieces would only open queues. */
static void divide(struct cp *cp)
{
	unsigned jobs = cp->ask->jobs ? cp->ask->jobs : JOBS_DEFAULT;
	uint64_t pieces = cp->total == CP_UNKNOWN ? UINT64_MAX : cp->total / cp->piece + 1;

	jobs = least(jobs, least(cp->from->workers_max, cp->to->workers_max));
	cp->jobs = pieces < jobs ? (unsigned)pieces : jobs;
	cp->depth = cp->ask->depth ? cp->ask->depth : DEPTH_DEFAULT;
}

int weft_cp_check(struct cp *cp, struct weft_err *err)
{
	int rc;

	cp->piece = cp->ask->piece ? cp->ask->piece : CP_PIECE;
	cp->total = cp->ask->length != WEFT_CLI_ALL ? cp->ask->length : cp->from->size;
	cp->sparse = cp->ask->sparse && cp->to->can_zero;
	rc = check_alignment(cp, err);
	if (rc == 0)
		rc = check_ends(cp, err);
	if (rc == 0)
		rc = check_sizes(cp, err);
	divide(cp);
	return rc;
}
