/* erase.c - weft zero and weft trim: one piece after the other, then a flush. The library divides a
 * piece further, as the controller's limits require, and has those parts in flight at once.
 *
 *   piece ─▶ piece ─▶ … ─▶ flush ─▶ may a cache have been lost since the first? ─▶ all of it again
 *
 * Erasing twice has the effect of erasing once, so nothing needs to be read back. */
#include "cli/erase.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/host_options.h"

#define PIECE      (UINT64_C(128) << 20)
#define PASSES_MAX 8

/* --- options ---------------------------------------------------------------------------------- */

/* Nothing is taken for granted: what is gone is gone. */
static int check_options(const struct weft_erase *what)
{
	if (what->all && (what->has_offset || what->has_length))
		return weft_cli_usage_error(what->command,
					    "--all does not go with --offset and --length");
	if (!what->all && !(what->has_offset && what->has_length))
		return weft_cli_usage_error(what->command, "which range? --offset and --length say "
							   "it, or --all");
	if (what->has_length && !what->length)
		return weft_cli_usage_error(what->command, "--length 0 is no range");
	return weft_host_check(what->command, what->uri, &what->connect, what->nsid, NULL);
}

/* --- the work --------------------------------------------------------------------------------- */

static int erase_pieces(const struct weft_erase *what, struct weft_remote *remote,
			struct weft_queue *queue, struct weft_err *err)
{
	struct weft_progress progress;
	uint64_t done = 0;
	int rc = 0;

	weft_progress_start(&progress, what->doing, what->length, what->quiet);
	while (rc == 0 && done < what->length) {
		uint64_t left = what->length - done;
		struct weft_cmd cmd = {
			.op = what->op,
			.flags = what->deac ? WEFT_UNMAP : 0,
			.ns = remote->ns,
			.offset = what->offset + done,
			.length = left < PIECE ? left : PIECE,
		};

		rc = weft_remote_run(remote, queue, &cmd, err);
		done += rc == 0 ? cmd.length : 0;
		weft_progress_show(&progress, done);
	}
	weft_progress_clear(&progress);
	if (rc < 0 && done)
		fprintf(stderr, "%s: the first %s of %s are %s\n", what->command,
			weft_exact_text(done).s, weft_size_text(what->length).s, what->did);
	return rc;
}

/* *@lost: what it did may be gone. */
static int erase_pass(const struct weft_erase *what, struct weft_remote *remote,
		      struct weft_queue *queue, bool *lost, struct weft_err *err)
{
	struct weft_cmd flush = { .op = WEFT_FLUSH, .ns = remote->ns };
	struct weft_ctrl_info before;
	int rc;

	weft_ctrl_info(remote->ctrl, &before);
	rc = erase_pieces(what, remote, queue, err);
	if (rc == 0)
		rc = weft_remote_run(remote, queue, &flush, err);
	*lost = rc == 0 && weft_remote_cache_may_be_lost(remote, &before);
	return rc;
}

/* Until one pass and its flush have seen no loss. */
static int erase_durably(const struct weft_erase *what, struct weft_remote *remote,
			 struct weft_queue *queue, struct weft_err *err)
{
	bool lost;

	for (unsigned pass = 1; pass <= PASSES_MAX; pass++) {
		int rc = erase_pass(what, remote, queue, &lost, err);

		if (rc < 0 || !lost)
			return rc;
		if (pass < PASSES_MAX && !what->quiet)
			fprintf(stderr,
				"%s: the connection was lost on the way, and %s has a volatile "
				"cache: %s all of it again\n",
				what->command, what->uri, what->doing);
	}
	return weft_fail(err, -EIO,
			 "the connection was lost on the way, %d times, and the target has a "
			 "volatile cache: whether all of it is %s is not known",
			 PASSES_MAX, what->did);
}

static int erase(struct weft_erase *what, struct weft_remote *remote, struct weft_err *err)
{
	struct weft_err why = { "" };
	struct weft_queue *queue;
	int rc;

	if (what->all)
		what->length = remote->ns_info.size;
	rc = weft_range_check(what->uri, &remote->ns_info, what->offset, what->length, err);
	if (rc == 0)
		rc = weft_remote_queue_open(remote, &queue, err);
	if (rc < 0)
		return rc;
	rc = erase_durably(what, remote, queue, &why);
	weft_queue_close(queue);
	return rc < 0 ? weft_fail(err, rc, "%s: %s", what->uri, why.text) : 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static void report_erase(const struct weft_erase *what, double seconds)
{
	json_auto_t *json = json_pack("{s:s, s:I, s:I, s:o, s:b}", "destination", what->uri,
				      "offset", (json_int_t)what->offset, "bytes",
				      (json_int_t)what->length, "seconds",
				      weft_json_seconds(seconds), "flushed", true);

	if (what->json)
		weft_print_json(json, false);
	else if (!what->quiet)
		printf("%s %s at %" PRIu64 " in %s\n", what->did, weft_size_text(what->length).s,
		       what->offset, weft_seconds_text(seconds).s);
}

static int run_erase(struct weft_erase *what)
{
	double start_s = weft_now_s();
	struct weft_remote remote;
	struct weft_err err = { "" };
	int rc = weft_remote_open(&remote, what->quiet ? NULL : what->command, what->uri,
				  what->nsid, &what->connect, &err);

	if (rc == 0)
		rc = erase(what, &remote, &err);
	weft_remote_close(&remote);
	if (rc < 0)
		return weft_cli_failed(what->command, err.text);
	report_erase(what, weft_now_s() - start_s);
	return EXIT_OK;
}

int weft_erase(struct weft_erase *what, int argc, char **argv)
{
	int status = weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420/NQN --all");

	if (status != EXIT_OK)
		return status;
	what->uri = argv[optind];
	status = check_options(what);
	return status == EXIT_OK ? run_erase(what) : status;
}
