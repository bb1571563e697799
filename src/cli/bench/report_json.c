/* report_json.c - everything about a run, for programs. Times are in nanoseconds where the name
 * says so, else in seconds. */
#include <string.h>

#include "base/cpus.h"
#include "cli/bench/report.h"
#include "cli/print.h"

static const char *const op_names[BENCH_OPS] = { "read", "write", "flush" };
static const struct {
	const char *name;
	double percent;
} percentiles[] = {
	{ "50", 50 },     { "75", 75 },     { "90", 90 },       { "95", 95 },         { "99", 99 },
	{ "99.5", 99.5 }, { "99.9", 99.9 }, { "99.99", 99.99 }, { "99.999", 99.999 },
};

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *config_json(const struct bench_config *c)
{
	char cpus[128];

	weft_cpus_format(&c->cpus, cpus, sizeof(cpus));
	return json_pack(
		"{s:s, s:i, s:I, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:i, s:b, "
		"s:b, s:b, s:b}",
		"rw", c->rw, "mix", (int)c->read_pct, "bs", (json_int_t)c->bs, "depth",
		(int)c->depth, "jobs", (int)c->jobs, "queues", (int)c->queues, "cpus", cpus, "time",
		(double)c->time_ns / 1e9, "warmup", (double)c->warmup_ns / 1e9, "interval",
		(double)c->interval_ns / 1e9, "rate", (json_int_t)c->rate, "offset",
		(json_int_t)c->offset, "size", (json_int_t)c->size, "seed", (json_int_t)c->seed,
		"flush_every", (int)c->flush_every, "verify", c->verify, "strict", c->strict,
		"hdgst", c->hdgst, "ddgst", c->ddgst);
}

static const char *without_scheme(const char *uri)
{
	const char *scheme = strstr(uri, "://");

	return scheme ? scheme + 3 : uri;
}

static json_t *target_json(const struct bench_result *r)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:i}", "uri", r->where,
			 "transport", r->path.transport, "address", without_scheme(r->info.address),
			 "subnqn", r->info.subnqn, "model", r->info.model, "firmware",
			 r->info.firmware, "nsid", (int)r->ns_info.nsid, "block_size",
			 (int)r->ns_info.block_size, "size", (json_int_t)r->ns_info.size,
			 "volatile_cache", r->info.volatile_cache, "queue_depth",
			 (int)r->info.depth);
}

static json_t *percentiles_json(const struct weft_hist *hist)
{
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_object_set_new(object, percentiles[i].name,
				    integer(weft_hist_percentile(hist, percentiles[i].percent)));
	return object;
}

/* [lowest, highest, how many] of every bucket that is not empty. */
static json_t *buckets_json(const struct weft_hist *hist)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < WEFT_HIST_BUCKETS; i++) {
		if (hist->bucket[i])
			json_array_append_new(list,
					      json_pack("[I, I, I]", (json_int_t)weft_hist_low(i),
							(json_int_t)weft_hist_high(i),
							(json_int_t)hist->bucket[i]));
	}
	return list;
}

static json_t *latency_json(const struct weft_hist *hist)
{
	return json_pack("{s:I, s:f, s:f, s:I, s:o, s:o}", "min",
			 (json_int_t)(hist->count ? hist->min : 0), "mean", weft_hist_mean(hist),
			 "stdev", weft_hist_stdev(hist), "max", (json_int_t)hist->max,
			 "percentiles", percentiles_json(hist), "histogram", buckets_json(hist));
}

static json_t *op_json(const struct bench_result *r, enum bench_op op)
{
	double iops = r->seconds > 0 ? (double)r->ios[op] / r->seconds : 0;
	uint64_t bytes = op == BENCH_FLUSH ? 0 : r->ios[op] * r->config->bs;
	double rate = r->seconds > 0 ? (double)bytes / r->seconds / (1 << 20) : 0;

	return json_pack("{s:I, s:f, s:I, s:f, s:o}", "ios", (json_int_t)r->ios[op], "iops", iops,
			 "bytes", (json_int_t)bytes, "mib_per_s", rate, "latency_ns",
			 latency_json(&r->hist[op]));
}

static json_t *series_json(const struct bench_series *series)
{
	json_t *list = json_array();

	for (size_t i = 0; i < series->count; i++) {
		const struct bench_point *p = &series->points[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "at",
				  weft_json_seconds(p->at_s), "seconds",
				  weft_json_seconds(p->seconds), "reads",
				  (json_int_t)p->ios[BENCH_READ], "writes",
				  (json_int_t)p->ios[BENCH_WRITE], "flushes",
				  (json_int_t)p->ios[BENCH_FLUSH], "iops", bench_point_iops(p),
				  "p50_ns", (json_int_t)p->p50_ns, "p99_ns", (json_int_t)p->p99_ns,
				  "max_ns", (json_int_t)p->max_ns, "failed", (json_int_t)p->failed,
				  "reconnects", (json_int_t)p->reconnects));
	}
	return list;
}

static const char *op_name(enum weft_op_code op)
{
	return op == WEFT_READ ? "read" : op == WEFT_WRITE ? "write" : "flush";
}

static json_t *failures_json(const struct bench_errors *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->nkinds; i++) {
		const struct bench_failure *kind = &t->kinds[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:i, s:s, s:i, s:I, s:s}", "op",
						op_name(kind->op), "errno", -kind->rc, "error",
						strerror(-kind->rc), "nvme_status",
						(int)kind->status, "count", (json_int_t)kind->count,
						"first", kind->first.text));
	}
	return list;
}

static json_t *problems_json(const struct bench_errors *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->nproblems; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "what",
						      bench_finding_text(t->problems[i].what),
						      "offset", (json_int_t)t->problems[i].offset,
						      "text", t->problems[i].text));
	return list;
}

static json_t *found_json(const struct bench_errors *t)
{
	json_t *object = json_object();

	for (unsigned i = BENCH_FINE + 1; i < BENCH_FINDINGS; i++)
		json_object_set_new(object, bench_finding_text(i), integer(t->found[i]));
	return object;
}

static json_t *verify_json(const struct bench_result *r)
{
	if (!r->config->verify)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "checked", (json_int_t)r->checked,
			 "wrong", (json_int_t)bench_errors_bad_blocks(&r->trouble),
			 "not_of_this_run", (json_int_t)r->unstamped, "unreadable",
			 (json_int_t)r->trouble.unchecked, "found", found_json(&r->trouble),
			 "problems", problems_json(&r->trouble));
}

static json_t *cpu_json(const struct bench_result *r)
{
	return json_pack("{s:o, s:o, s:f}", "user", weft_json_seconds(r->user_s), "system",
			 weft_json_seconds(r->system_s), "us_per_io", bench_result_cpu_us(r));
}

static json_t *steady_json(const struct bench_result *r, bool rdma)
{
	json_t *steady = json_pack("{s:I}", "copied_bytes", (json_int_t)r->copied_bytes);

	if (rdma)
		json_object_set_new(steady, "registrations", integer(r->registrations));
	return steady;
}

/* [lowest, highest, how many], as of latencies. */
static json_t *lengths_json(const struct weft_stalls *s)
{
	json_t *list = json_array();

	for (unsigned n = 0; n < WEFT_STALL_LENGTHS; n++) {
		uint64_t low = n ? UINT64_C(1000) << (n - 1) : 0, high = (UINT64_C(1000) << n) - 1;

		if (s->by_length[n])
			json_array_append_new(list, json_pack("[I, I, I]", (json_int_t)low,
							      (json_int_t)high,
							      (json_int_t)s->by_length[n]));
	}
	return list;
}

static json_t *stalls_json(const struct weft_stalls *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "count", (json_int_t)s->stalls, "longest_ns",
			 (json_int_t)s->longest_ns, "total_ns", (json_int_t)s->total_ns, "switches",
			 (json_int_t)s->switches, "histogram", lengths_json(s));
}

static json_t *losses_json(const struct bench_losses *l)
{
	json_t *list = json_array(), *loss;

	for (unsigned i = 0; i < l->count; i++) {
		loss = json_pack("{s:o, s:s, s:s, s:n}", "at_s", weft_json_seconds(l->at[i].at_s),
				 "path", l->at[i].path, "why", l->at[i].why, "seconds");
		if (l->at[i].seconds >= 0)
			json_object_set_new(loss, "seconds", weft_json_seconds(l->at[i].seconds));
		json_array_append_new(list, loss);
	}
	return list;
}

json_t *bench_report_json(const struct bench_result *r, bool rdma)
{
	struct weft_err why = {};
	bool fine = bench_result_fine(r, &why);
	json_t *result = json_pack("{s:b, s:s, s:s, s:o, s:o, s:o}", "ok", fine, "why", why.text,
				   "date", r->when, "target", target_json(r), "config",
				   config_json(r->config), "seconds",
				   weft_json_seconds(r->seconds));

	for (enum bench_op op = 0; op < BENCH_OPS; op++)
		json_object_set_new(result, op_names[op], op_json(r, op));
	json_object_set_new(result, "depth", integer(bench_result_depth(r)));
	json_object_set_new(result, "unstarted", integer(r->unstarted));
	json_object_set_new(result, "left_in_flight", integer(r->left));
	json_object_set_new(result, "cpu", cpu_json(r));
	json_object_set_new(result, "counters", weft_counters_json(&r->counters, rdma));
	json_object_set_new(result, "steady", steady_json(r, rdma));
	json_object_set_new(result, "stopped", json_boolean(r->stopped));
	json_object_set_new(result, "reconnects", integer(r->reconnects));
	json_object_set_new(result, "losses", losses_json(&r->losses));
	json_object_set_new(result, "stalls", stalls_json(&r->stalls));
	json_object_set_new(result, "failed", integer(r->trouble.failed));
	json_object_set_new(result, "failures", failures_json(&r->trouble));
	json_object_set_new(result, "verify", verify_json(r));
	json_object_set_new(result, "series", series_json(&r->series));
	return result;
}
