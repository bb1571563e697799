/* copy.c - a copy from its beginning to its end.
 *
 *   open ─▶ check ─▶ prepare ─▶ copy ─▶ flush ─▶ verify ─▶ finish
 *                       │         └─────────┴────────┴──▶ stop: flush what was written, report it
 *                       └─ until here nothing is changed */
#include <errno.h>
#include <isa-l/crc64.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/plural.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cp/internal.h"
#include "cli/host_options.h"

void weft_cp_init(struct weft_cp *what, const char *command)
{
	*what = (struct weft_cp){ .command = command,
				  .to_option = "--offset",
				  .length = WEFT_CLI_ALL };
	weft_host_options_init(&what->connect);
}

static void print_endpoint(const struct cp *cp, const char *role, const struct cp_endpoint *end)
{
	fprintf(stderr, "%s: %s %s", cp->ask->command, role, end->name);
	if (end->size != CP_UNKNOWN)
		fprintf(stderr, ", %s", weft_size_text(end->size).s);
	if (end->block > 1)
		fprintf(stderr, ", blocks of %" PRIu32, end->block);
	fprintf(stderr, "\n");
}

static void print_plan(const struct cp *cp)
{
	if (!cp->ask->verbose)
		return;
	print_endpoint(cp, "from", cp->from);
	print_endpoint(cp, "to", cp->to);
	fprintf(stderr, "%s: %u thread%s, each with %u piece%s of %s; zeroes %s\n",
		cp->ask->command, cp->jobs, weft_plural(cp->jobs), cp->depth,
		weft_plural(cp->depth), weft_size_text(cp->piece).s,
		cp->sparse ? "become holes" : "are written");
	if (cp->to->size != CP_UNKNOWN && cp->total < cp->to->size)
		fprintf(stderr, "%s: %s is larger by %s; the rest of it stays as it is\n",
			cp->ask->command, cp->to->name, weft_size_text(cp->to->size - cp->total).s);
}

/* --- the steps -------------------------------------------------------------------------------- */

static int open_copy(struct cp *cp, struct weft_err *err)
{
	int rc = weft_cp_open_from(cp, &cp->from, err);

	if (rc == 0)
		rc = weft_cp_open_to(cp, &cp->to, err);
	if (rc == 0)
		rc = weft_cp_check(cp, err);
	if (rc == 0)
		rc = weft_cp_workers_open(cp, err);
	if (rc < 0)
		return rc;
	print_plan(cp);
	rc = weft_cp_signals_init(cp->wake);
	if (rc == 0 && cp->to->ops->prepare)
		rc = cp->to->ops->prepare(cp->to, cp->total, err);
	return rc;
}

static int copy_data(struct cp *cp, struct weft_err *err)
{
	int rc;

	weft_cp_plan_range(cp, cp->total != CP_UNKNOWN ? cp->total : cp->to->size);
	rc = weft_cp_run_pass(cp, cp->ask->doing, err);
	if (rc == 0 && cp->total == CP_UNKNOWN) {
		/* The stream filled the destination to the last byte. */
		cp->total = cp->end;
		rc = weft_cp_stream_ended(cp->from, err);
	}
	return rc;
}

static int flush_destination(struct cp *cp, struct weft_err *err)
{
	int rc = cp->to->ops->flush ? cp->to->ops->flush(cp->to, err) : 0;

	cp->flushed = rc == 0 && cp->to->ops->flush;
	return rc;
}

static int verify_copy(struct cp *cp, struct weft_err *err)
{
	uint64_t copied = cp->next, complete = weft_cp_padded(cp, cp->total);
	int rc;

	cp->verifying = true;
	weft_cp_plan_range(cp, complete);
	rc = weft_cp_run_pass(cp, "verifying", err);
	cp->verified = atomic_load(&cp->done);
	cp->next = cp->end = copied; /* the report is about the copy */
	cp->broken = CP_UNKNOWN;
	if (rc == 0 && cp->differ)
		return weft_fail(err, -EILSEQ,
				 "%s is not what was written: read back, %" PRIu64 " of %" PRIu64
				 " pieces of %s differ, the first at %" PRIu64 "; do not trust it",
				 cp->to->name, cp->differ, (complete + cp->piece - 1) / cp->piece,
				 weft_size_text(cp->piece).s, cp->to->base + cp->differ_at);
	return rc;
}

static bool must_verify(const struct cp *cp)
{
	if (cp->ask->verify)
		return true;
	if (!cp->to->ops->lost || !cp->to->ops->lost(cp->to))
		return false;
	fprintf(stderr,
		"%s: the connection was lost on the way, and %s has a volatile cache: reading back "
		"what was written\n",
		cp->ask->command, cp->to->name);
	return true;
}

static int run_copy(struct cp *cp, struct weft_err *err)
{
	struct weft_err ignored = { "" };
	int rc = open_copy(cp, err);

	if (rc < 0)
		return rc;
	cp->start_s = weft_now_s();
	rc = copy_data(cp, err);
	if (rc < 0 && !cp->abandoned)
		flush_destination(cp, &ignored);
	if (rc == 0)
		rc = flush_destination(cp, err);
	cp->seconds = weft_now_s() - cp->start_s;
	if (rc == 0 && must_verify(cp))
		rc = verify_copy(cp, err);
	if (rc == 0 && cp->to->ops->finish)
		rc = cp->to->ops->finish(cp->to, cp->total, err);
	return rc;
}

/* --- all of it -------------------------------------------------------------------------------- */

static uint64_t sum_of_zeroes(uint32_t piece)
{
	_cleanup_(weft_freep) unsigned char *zeroes = calloc(1, piece);

	return zeroes ? crc64_ecma_refl(0, zeroes, piece) : 0;
}

/* The last line on standard error is why it failed. */
static void stop_waiting_messages(struct cp *cp)
{
	struct cp_endpoint *ends[] = { cp->from, cp->to };

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i])
			weft_cp_ns_be_quiet(ends[i]);
	}
}

static void free_copy(struct cp *cp)
{
	struct cp_endpoint *ends[] = { cp->from, cp->to };

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i])
			ends[i]->ops->close(ends[i]);
	}
	weft_cp_workers_free(cp);
	free(cp->sums);
	close(cp->wake);
}

int weft_cp(const struct weft_cp *what)
{
	struct cp cp = { .ask = what,
			 .taking = PTHREAD_MUTEX_INITIALIZER,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .total = CP_UNKNOWN };
	struct weft_err err = { "" };
	int rc, status;

	cp.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cp.wake < 0)
		return weft_cli_failed(what->command, strerror(errno));
	cp.zero_sum = sum_of_zeroes(what->piece ? what->piece : CP_PIECE);
	rc = run_copy(&cp, &err);
	if (rc < 0)
		stop_waiting_messages(&cp);
	status = rc < 0 ? weft_cp_failed(&cp, rc, &err) : weft_cp_succeeded(&cp);
	if (cp.abandoned || cp.stuck) {
		/* Threads are still at work on what would be freed. */
		_exit(weft_cli_end(what->command, status));
	}
	free_copy(&cp);
	return status;
}
