/* report.c - the result of a copy: the summary, or one sentence with the cause, what is left
 * behind, and what to do. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cp/internal.h"
#include "cli/print.h"

#define RATE_S 0.1 /* a copy that is shorter has no rate */

/* --- success ---------------------------------------------------------------------------------- */

static uint64_t padding(const struct cp *cp)
{
	return weft_cp_padded(cp, cp->total) - cp->total;
}

static json_t *counters(const struct cp *cp)
{
	struct cp_endpoint *ends[] = { cp->from, cp->to };
	struct weft_queue_stats sum = { 0 };
	bool rdma = false;

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i]->ops->counters)
			rdma |= ends[i]->ops->counters(ends[i], &sum);
	}
	return weft_counters_json(&sum, rdma);
}

static void print_copy_json(const struct cp *cp)
{
	/* weft read and weft write have one offset, that in the namespace. */
	bool two = !strcmp(cp->ask->to_option, "--to-offset");
	uint64_t offset = two || cp->from->base ? cp->from->base : cp->to->base;
	json_auto_t *json =
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:I, s:I, s:I}", "source",
			  cp->from->name, "destination", cp->to->name, "offset", (json_int_t)offset,
			  "bytes", (json_int_t)cp->total, "zeroes", (json_int_t)cp->zeroed,
			  "padding", (json_int_t)padding(cp), "verified", (json_int_t)cp->verified,
			  "seconds", weft_json_seconds(cp->seconds), "flushed", cp->flushed, "jobs",
			  (json_int_t)cp->jobs, "depth", (json_int_t)cp->depth, "bs",
			  (json_int_t)cp->piece);

	if (two)
		json_object_set_new(json, "to_offset", json_integer((json_int_t)cp->to->base));
	json_object_set_new(json, "counters", counters(cp));
	weft_print_json(json, false);
}

/* Zeroes are not moved, and what took no time has no rate. */
static void print_rate(const struct cp *cp, FILE *out)
{
	uint64_t moved = cp->total > cp->zeroed ? cp->total - cp->zeroed : 0;
	struct weft_text rate = { "" };

	if (cp->seconds >= RATE_S && moved)
		rate = weft_size_text((uint64_t)((double)moved / cp->seconds));
	if (!cp->zeroed && *rate.s)
		fprintf(out, " (%s/s)", rate.s);
	if (cp->zeroed && !moved)
		fprintf(out, ", all of it zeroes");
	else if (cp->zeroed)
		fprintf(out, ", %s of it data%s%s%s, the rest zeroes", weft_size_text(moved).s,
			*rate.s ? " at " : "", rate.s, *rate.s ? "/s" : "");
}

static void print_padding(const struct cp *cp, FILE *out)
{
	uint64_t pad = padding(cp);

	if (pad)
		fprintf(out,
			"; %" PRIu64 " byte%s from %" PRIu64
			" on became zeroes, to the end of the block",
			pad, weft_plural(pad), cp->to->base + cp->total);
}

static void print_nothing_copied(const struct cp *cp, FILE *out)
{
	if (cp->ask->length)
		fprintf(out, "nothing was %s: %s is empty\n", cp->ask->been, cp->from->name);
	else
		fprintf(out, "nothing was %s\n", cp->ask->been);
}

static void print_done(const struct cp *cp, FILE *out)
{
	fprintf(out, "%s %s in %s", cp->ask->did, weft_size_text(cp->total).s,
		weft_seconds_text(cp->seconds).s);
	print_rate(cp, out);
	print_padding(cp, out);
	if (cp->ask->verify)
		fprintf(out, "; all %" PRIu64 " bytes read back are equal", cp->verified);
	fprintf(out, "\n");
}

static void print_copy_text(const struct cp *cp)
{
	FILE *out = cp->to->is_stream ? stderr : stdout;

	if (cp->total)
		print_done(cp, out);
	else
		print_nothing_copied(cp, out);
}

int weft_cp_succeeded(struct cp *cp)
{
	if (cp->ask->json)
		print_copy_json(cp);
	else if (!cp->ask->quiet && !cp->ask->silent)
		print_copy_text(cp);
	return EXIT_OK;
}

/* --- failure ---------------------------------------------------------------------------------- */

static void part_text(const struct cp *cp, uint64_t complete, const char *durable, char *text,
		      size_t size)
{
	if (cp->total == CP_UNKNOWN || complete >= cp->total)
		snprintf(text, size, "the first %s are %s %s", weft_exact_text(complete).s,
			 cp->ask->been, durable);
	else
		snprintf(text, size, "the first %s of %s are %s %s, the rest %s",
			 weft_exact_text(complete).s, weft_size_text(cp->total).s, cp->ask->been,
			 durable, cp->unknown ? "perhaps in part" : "is not");
}

/* For a destination that is written in place. */
static void left_text(struct cp *cp, char *text, size_t size)
{
	const char *durable = cp->flushed ? "and flushed" : "but not flushed";
	uint64_t complete = weft_cp_completed_upto(cp);

	if (cp->differ)
		*text = '\0'; /* the sentence says it all */
	else if (cp->verifying)
		snprintf(text, size, "all is %s %s, but not all of it was read back", cp->ask->been,
			 durable);
	else if (cp->abandoned)
		snprintf(text, size, "the destination was being written, and is incomplete");
	else if (!complete)
		snprintf(text, size, "nothing is %s%s", cp->unknown ? "known to be " : "",
			 cp->ask->been);
	else
		part_text(cp, complete, durable, text, size);
}

static void cause_text(const struct weft_err *err, char *text, size_t size)
{
	int number = weft_cp_signal();

	if (err->text[0] || !number)
		snprintf(text, size, "%s", err->text);
	else
		snprintf(text, size, "stopped by SIG%s", sigabbrev_np(number));
}

/* Whether a retry of the command may succeed: the cause is temporary, and the data of a pipe is not
 * gone. */
static bool is_worth_again(const struct cp *cp)
{
	const struct cp_endpoint *ends[] = { cp->from, cp->to };
	bool passing = weft_cp_signal();

	for (unsigned i = 0; i < 2; i++) {
		if (!ends[i] || ends[i]->is_stream)
			return false;
		if (ends[i]->ctrl && weft_ctrl_state(ends[i]->ctrl, NULL) != WEFT_LIVE)
			passing = true;
	}
	return passing;
}

/* The reader of our output has closed it, and needs no message. */
static bool is_unwanted(const struct cp *cp, int rc)
{
	return rc == -EPIPE && !strcmp(cp->ask->to, "-");
}

int weft_cp_failed(struct cp *cp, int rc, struct weft_err *err)
{
	int number = weft_cp_signal();
	char cause[600], left[1200] = "";

	if (is_unwanted(cp, rc))
		return 128 + SIGPIPE;
	cause_text(err, cause, sizeof(cause));
	if (cp->to && cp->to->ops->abandon)
		cp->to->ops->abandon(cp->to, left, sizeof(left));
	if (!*left && cp->next)
		left_text(cp, left, sizeof(left));
	if (!cp->next || !*left)
		fprintf(stderr, "%s: %s\n", cp->ask->command, cause);
	else if (!is_worth_again(cp))
		fprintf(stderr, "%s: %s (%s)\n", cp->ask->command, cause, left);
	else
		fprintf(stderr, "%s: %s; %s: run the same command again\n", cp->ask->command, cause,
			left);
	return number ? 128 + number : EXIT_FAILED;
}
