/* report.c - how it ended: the summary, or one sentence with the cause, what is left behind, and
 * what to do. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cp/internal.h"
#include "cli/print.h"
#include "cli/units.h"

static void print_json(const struct cp *cp)
{
	json_auto_t *json = json_pack("{s:I, s:I, s:I, s:f, s:b, s:I, s:I, s:I}", "bytes",
				      (json_int_t)cp->total, "zeroes", (json_int_t)cp->zeroed,
				      "verified", (json_int_t)cp->verified, "seconds", cp->seconds,
				      "flushed", cp->flushed, "jobs", (json_int_t)cp->jobs, "depth",
				      (json_int_t)cp->depth, "bs", (json_int_t)cp->piece);

	weft_print_json(json, false);
}

static void print_text(const struct cp *cp)
{
	FILE *out = cp->to->is_stream ? stderr : stdout;
	double rate = cp->seconds > 0 ? (double)cp->total / cp->seconds : 0;

	fprintf(out, "%s %s in %.1f s (%s/s)", cp->ask->did, weft_size_text(cp->total).s,
		cp->seconds, weft_size_text((uint64_t)rate).s);
	if (cp->zeroed)
		fprintf(out, ", %s of it zeroes", weft_size_text(cp->zeroed).s);
	if (cp->ask->verify)
		fprintf(out, "; all %" PRIu64 " bytes read back are equal", cp->verified);
	fprintf(out, "\n");
}

int weft_cp_succeeded(struct cp *cp)
{
	if (cp->ask->json)
		print_json(cp);
	else if (!cp->ask->quiet && !cp->ask->silent)
		print_text(cp);
	return EXIT_OK;
}

/* --- failure ------------------------------------------------------------------------------------- */

/* Of what is written in place. */
static void left_text(struct cp *cp, char *text, size_t size)
{
	const char *durable = cp->flushed ? "and flushed" : "but not flushed";
	uint64_t complete = weft_cp_complete(cp);

	if (cp->differ)
		snprintf(text, size, "do not trust it");
	else if (cp->verifying)
		snprintf(text, size, "all is %s %s, but not all of it was read back", cp->ask->been,
			 durable);
	else if (cp->abandoned)
		snprintf(text, size, "the destination was being written, and is incomplete");
	else if (!complete)
		snprintf(text, size, "nothing is %s", cp->ask->been);
	else if (cp->total == CP_UNKNOWN)
		snprintf(text, size, "the first %" PRIu64 " bytes are %s %s", complete,
			 cp->ask->been, durable);
	else
		snprintf(text, size, "the first %s of %s are %s %s, the rest is not",
			 weft_size_text(complete).s, weft_size_text(cp->total).s, cp->ask->been,
			 durable);
}

static void cause_text(const struct weft_err *err, char *text, size_t size)
{
	int number = weft_cp_signal();

	if (err->text[0] || !number)
		snprintf(text, size, "%s", err->text);
	else
		snprintf(text, size, "stopped by SIG%s", sigabbrev_np(number));
}

/* The same again would do no better. */
static bool is_in_vain(int rc)
{
	return rc == -E2BIG || rc == -EINVAL || rc == -ENODATA || rc == -EPIPE;
}

int weft_cp_failed(struct cp *cp, int rc, struct weft_err *err)
{
	int number = weft_cp_signal();
	char cause[600], left[1200] = "";

	cause_text(err, cause, sizeof(cause));
	if (cp->to && cp->to->ops->abandon)
		cp->to->ops->abandon(cp->to, left, sizeof(left));
	if (!*left && cp->next)
		left_text(cp, left, sizeof(left));
	if (!cp->next || !*left)
		fprintf(stderr, "%s: %s\n", cp->ask->command, cause);
	else if (is_in_vain(rc))
		fprintf(stderr, "%s: %s (%s)\n", cp->ask->command, cause, left);
	else
		fprintf(stderr, "%s: %s; %s: run the same command again\n", cp->ask->command, cause,
			left);
	return number ? 128 + number : EXIT_FAILED;
}
