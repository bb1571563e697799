/* result.c - the result of a run: whether it was fine, and the sentence that says so. */
#include "bench/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plural.h"
#include "base/units.h"

void bench_result_free(struct bench_result *result)
{
	free(result->series.points);
}

static void sum_up_blocks(const struct bench_result *r, struct weft_err *err)
{
	uint64_t bad = bench_errors_bad_blocks(&r->trouble), empty = r->trouble.found[BENCH_EMPTY];

	if (empty && empty * 2 >= bad && r->reconnects)
		weft_fail(err, 0,
			  "%" PRIu64 " block%s came back empty after a reconnect: the target lost "
			  "its data; memory (mem:) does not survive a restart, use file: or block:",
			  empty, weft_plural(empty));
	weft_fail(err, 0, "%" PRIu64 " block%s not as written", bad, bad == 1 ? " is" : "s are");
}

/* A run over what was written earlier has to find some of it. */
static bool found_nothing(const struct bench_result *r)
{
	return r->config->verify && r->checked && r->checked == r->unstamped;
}

bool bench_result_fine(const struct bench_result *r, struct weft_err *err)
{
	const struct bench_errors *t = &r->trouble;

	if (bench_errors_bad_blocks(t))
		sum_up_blocks(r, err);
	else if (r->end.text[0])
		weft_fail(err, 0, "%s", r->end.text);
	else if (t->failed)
		weft_fail(err, 0, "%" PRIu64 " I/O%s failed%s: %s", t->failed,
			  weft_plural(t->failed), t->failed == 1 ? "" : ", the first of them",
			  t->kinds[0].first.text);
	else if (r->left)
		weft_fail(err, 0, "stopped before %" PRIu64 " I/O%s in flight had ended", r->left,
			  weft_plural(r->left));
	else if (found_nothing(r))
		weft_fail(err, 0, "no block was written with --seed %" PRIu64, r->config->seed);
	else if (!r->stopped && !r->ios[BENCH_READ] && !r->ios[BENCH_WRITE])
		weft_fail(err, 0, "no I/O completed while it measured; use a longer --time");
	return !err->text[0];
}

static void describe_mode(const struct bench_config *c, char *text, size_t size)
{
	if (c->read_pct > 0 && c->read_pct < 100)
		snprintf(text, size, "%s %u %% reads", c->rw, c->read_pct);
	else
		snprintf(text, size, "%s", c->rw);
}

unsigned bench_result_depth(const struct bench_result *r)
{
	uint64_t most = (uint64_t)r->info.depth * r->config->queues;

	return most < r->config->depth ? (unsigned)most : r->config->depth;
}

static void describe_depth(const struct bench_result *r, char *text, size_t size)
{
	unsigned depth = bench_result_depth(r);

	if (depth == r->config->depth)
		snprintf(text, size, "depth %u", depth);
	else
		snprintf(text, size, "depth %u of %u (the queue's limit)", depth, r->config->depth);
}

static const char *describe_digests(const struct bench_config *c)
{
	return c->hdgst && c->ddgst ? ", both digests" :
	       c->hdgst             ? ", header digest" :
	       c->ddgst             ? ", data digest" :
				      "";
}

void bench_result_conditions(const struct bench_result *r, char *text, size_t size)
{
	const struct bench_config *c = r->config;
	char mode[32], depth[64], rate[64] = "";

	describe_mode(c, mode, sizeof(mode));
	describe_depth(r, depth, sizeof(depth));
	if (c->rate)
		snprintf(rate, sizeof(rate), ", at %s IOPS", weft_count_label((double)c->rate).s);
	snprintf(text, size, "%s, %s, %s, %u job%s, %u queue%s%s%s%s", mode,
		 weft_unit_size_text(c->bs).s, depth, c->jobs, weft_plural(c->jobs), c->queues,
		 weft_plural(c->queues), c->jobs > 1 && c->queues ? " each" : "",
		 describe_digests(c), rate);
}

double bench_result_cpu_us(const struct bench_result *r)
{
	uint64_t ios = r->ios[BENCH_READ] + r->ios[BENCH_WRITE];

	return ios ? (r->user_s + r->system_s) * 1e6 / (double)ios : 0;
}
