/* cmd_bench.c - weft bench: the load generator and verifier. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/debounce.h"
#include "base/draft.h"
#include "base/size.h"
#include "base/units.h"
#include "cli/bench/report.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/print.h"

#define SECOND UINT64_C(1000000000)

enum {
	JOBS_MAX = 256,
	QUEUES_MAX = 256,
	DEPTH_MAX = 65535,
	BS_MAX = 64 << 20,
	STEPS_MAX = 1000000, /* of the time series */
	FLUSH_VERIFY = 256,  /* writes between two flushes, where --verify needs them */
};

static const char usage[] =
	"usage: weft bench [OPTION]... URI\n"
	"\n"
	"Loads a namespace (nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may be left\n"
	"out if there is only one) and tells IOPS, bandwidth, latency.\n"
	"\n"
	"      --rw MODE        read, write, rw: one after the other; randread,\n"
	"                       randwrite, randrw: anywhere (randread)\n"
	"      --mix PERCENT    reads of rw and randrw (70)\n"
	"      --write-ok       needed to write: what the namespace holds is overwritten\n"
	"      --bs SIZE        of one I/O (4K)\n"
	"      --depth N        I/Os in flight, per job (32)\n"
	"      --jobs N         threads; each has its share of the region (1)\n"
	"      --queues N       I/O queues per job, its depth is spread over them (1)\n"
	"      --cpus LIST      each job stays on one of these, in turn, such as 0-3,5\n"
	"                       (anywhere)\n"
	"      --time SECONDS   or 500ms, 2m, 1h (10)\n"
	"      --warmup SECONDS before that, not counted (0)\n"
	"      --rate IOPS      at most, of all jobs; latency counts from when an I/O was\n"
	"                       due\n"
	"      --offset SIZE    where the region begins (0)\n"
	"      --size SIZE      how long it is (to the end of the namespace)\n"
	"      --flush-every N  flush after N writes of a job (never; --verify: 256)\n"
	"      --verify         stamp what is written, check what is read, in the end all\n"
	"      --strict         also what was not flushed may not be lost in a reconnect\n"
	"      --seed N         for offsets and data (a new one every time)\n"
	"      --interval TIME  step of the time series (1s; 100ms in runs of up to 20 s)\n"
	"      --plot FILE.svg  draw latency by percentile and throughput over time\n"
	"      --json           everything, as JSON\n"
	"  -h, --help           this text\n"
	"\n"
	"Where, and how to connect:\n"
	"\n" WEFT_NS_USAGE WEFT_HOST_USAGE WEFT_URI_USAGE "\n"
	"  weft bench nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:default --time 5\n"
	"  weft bench 'nvme+tcp://192.0.2.1/NQN?nsid=2' --rw randrw --write-ok --verify\n";

static const struct mode {
	const char *name;
	bool random, mixed;
	unsigned read_pct;
} modes[] = {
	{ "read", false, false, 100 },   { "write", false, false, 0 },
	{ "rw", false, true, 70 },       { "randread", true, false, 100 },
	{ "randwrite", true, false, 0 }, { "randrw", true, true, 70 },
};

#define NMODES (sizeof(modes) / sizeof(modes[0]))

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < NMODES; i++) {
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	}
	return NULL;
}

struct bench_command {
	const char *name;
	struct bench_config config;
	uint32_t nsid;               /* of --ns; 0: not given */
	struct weft_options connect; /* what the options say; the URI's words are not in it */
	uint64_t mix;                /* UINT64_MAX: not given */
	bool seed_given, flush_given, write_ok, json;
	const char *plot;
};

static int take_count(const char *command, const struct weft_cli_option *option, const char *value,
		      void *to)
{
	uint64_t *count = to;

	if (!weft_count_parse(value, count) && *count >= option->min && *count <= option->max)
		return 1;
	weft_cli_usage_error(command,
			     "--%s: expected a number from %" PRIu64 " to %" PRIu64 ", got \"%s\"",
			     option->name, option->min, option->max, value);
	return -1;
}

static int take_number(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	uint64_t wide;

	if (take_count(command, option, value, &wide) < 0)
		return -1;
	*(unsigned *)to = (unsigned)wide;
	return 1;
}

static int take_size(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	bool bounded = option->max < INT64_MAX;
	struct weft_err doubt = { "" };
	char least[32], most[32];
	uint64_t *bytes = to;

	if (!weft_size_parse(value, bytes) && *bytes >= option->min && *bytes <= option->max)
		return 1;
	weft_size_format(option->min, least, sizeof(least));
	weft_size_format(option->max, most, sizeof(most));
	if (weft_size_is_ambiguous(value, &doubt))
		weft_cli_usage_error(command, "--%s: %s", option->name, doubt.text);
	else
		weft_cli_usage_error(command,
				     "--%s: expected a size from %s%s%s, such as 4K, 1M or 2G, got "
				     "\"%s\"",
				     option->name, least, bounded ? " to " : " on",
				     bounded ? most : "", value);
	return -1;
}

static int take_time(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	uint64_t *ns = to;

	if (!weft_ns_parse(value, ns) && *ns >= option->min && *ns <= 1000 * 3600 * SECOND)
		return 1;
	weft_cli_usage_error(command,
			     "--%s: expected a time from %s to 1000h, such as 10 (seconds), 500ms "
			     "or 2m, got \"%s\"",
			     option->name, option->min ? "1ms" : "0", value);
	return -1;
}

static int take_mode(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	const struct mode *mode = find_mode(value);

	if (mode) {
		*(const char **)to = mode->name;
		return 1;
	}
	weft_cli_usage_error(command,
			     "--rw: expected read, write, rw, randread, randwrite or randrw, got "
			     "\"%s\"",
			     value);
	return -1;
}

static int take_cpus(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	struct bench_config *config = to;
	struct weft_err why = { "" };

	if (weft_cpus_parse_usable(value, &config->cpus, &why) < 0) {
		weft_cli_usage_error(command, "--cpus: %s", why.text);
		return -1;
	}
	sched_getaffinity(0, sizeof(config->home_cpus), &config->home_cpus);
	return 1;
}

static int take_plot(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	const char *end = strrchr(value, '.');

	if (end && end != value && end[-1] != '/' && !strcasecmp(end, ".svg"))
		return weft_cli_take_text(command, option, value, to);
	weft_cli_usage_error(command,
			     "--plot draws SVG: it takes the name of a file that ends in .svg, not "
			     "\"%s\"",
			     value);
	return -1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_OWN("rw", take_mode,
		     .to = WEFT_CLI_AT(struct bench_command, config.rw, const char *)),
	WEFT_CLI_OWN("mix", take_count, .to = WEFT_CLI_AT(struct bench_command, mix, uint64_t),
		     .max = 100),
	WEFT_CLI_FLAG("write-ok", 0, struct bench_command, write_ok),
	WEFT_CLI_OWN("bs", take_size, .to = WEFT_CLI_AT(struct bench_command, config.bs, uint64_t),
		     .min = 512, .max = BS_MAX),
	WEFT_CLI_OWN("depth", take_number,
		     .to = WEFT_CLI_AT(struct bench_command, config.depth, unsigned), .min = 1,
		     .max = DEPTH_MAX),
	WEFT_CLI_OWN("jobs", take_number,
		     .to = WEFT_CLI_AT(struct bench_command, config.jobs, unsigned), .min = 1,
		     .max = JOBS_MAX),
	WEFT_CLI_OWN("queues", take_number,
		     .to = WEFT_CLI_AT(struct bench_command, config.queues, unsigned), .min = 1,
		     .max = QUEUES_MAX),
	WEFT_CLI_OWN("cpus", take_cpus,
		     .to = WEFT_CLI_AT(struct bench_command, config, struct bench_config)),
	WEFT_CLI_OWN("time", take_time,
		     .to = WEFT_CLI_AT(struct bench_command, config.time_ns, uint64_t),
		     .min = SECOND / 1000),
	WEFT_CLI_OWN("warmup", take_time,
		     .to = WEFT_CLI_AT(struct bench_command, config.warmup_ns, uint64_t)),
	WEFT_CLI_OWN("rate", take_count,
		     .to = WEFT_CLI_AT(struct bench_command, config.rate, uint64_t), .min = 1,
		     .max = UINT64_C(1000000000)),
	WEFT_CLI_OWN("offset", take_size,
		     .to = WEFT_CLI_AT(struct bench_command, config.offset, uint64_t),
		     .max = INT64_MAX),
	WEFT_CLI_OWN("size", take_size,
		     .to = WEFT_CLI_AT(struct bench_command, config.size, uint64_t), .min = 512,
		     .max = INT64_MAX),
	WEFT_CLI_OWN("flush-every", take_number,
		     .to = WEFT_CLI_AT(struct bench_command, config.flush_every, unsigned),
		     .max = 1000000000, WEFT_CLI_GIVEN(struct bench_command, flush_given)),
	WEFT_CLI_FLAG("verify", 0, struct bench_command, config.verify),
	WEFT_CLI_FLAG("strict", 0, struct bench_command, config.strict),
	WEFT_CLI_OWN("seed", take_count,
		     .to = WEFT_CLI_AT(struct bench_command, config.seed, uint64_t),
		     .max = UINT64_C(1000000000000000),
		     WEFT_CLI_GIVEN(struct bench_command, seed_given)),
	WEFT_CLI_OWN("interval", take_time,
		     .to = WEFT_CLI_AT(struct bench_command, config.interval_ns, uint64_t),
		     .min = SECOND / 1000),
	WEFT_CLI_OWN("plot", take_plot,
		     .to = WEFT_CLI_AT(struct bench_command, plot, const char *)),
	WEFT_CLI_FLAG("json", 0, struct bench_command, json),
	WEFT_NS_OPTION(struct bench_command, nsid),
	WEFT_HOST_OPTIONS(struct bench_command, connect),
	{},
};

static void set_defaults(struct bench_command *p, const char *name)
{
	*p = (struct bench_command){ .name = name, .mix = UINT64_MAX };
	p->config = (struct bench_config){ .rw = "randread",
					   .bs = 4096,
					   .depth = 32,
					   .jobs = 1,
					   .queues = 1,
					   .time_ns = 10 * SECOND };
	weft_host_options_init(&p->connect);
}

/* A seed that a double holds exactly, so that JSON readers give it back unchanged. */
static void choose_seed(struct bench_config *c)
{
	if (getrandom(&c->seed, sizeof(c->seed), 0) != sizeof(c->seed))
		c->seed = (uint64_t)(uintptr_t)c;
	c->seed %= UINT64_C(1000000000000);
}

static void resolve_defaults(struct bench_command *p)
{
	struct bench_config *c = &p->config;
	const struct mode *mode = find_mode(c->rw);

	c->random = mode->random;
	c->read_pct = mode->mixed && p->mix != UINT64_MAX ? (unsigned)p->mix : mode->read_pct;
	if (!c->interval_ns)
		c->interval_ns = c->time_ns > 20 * SECOND ? SECOND : SECOND / 10;
	if (c->verify && !p->flush_given)
		c->flush_every = FLUSH_VERIFY;
	if (!p->seed_given)
		choose_seed(c);
}

static int refuse_combination(const struct bench_command *p, struct weft_err *err)
{
	const struct bench_config *c = &p->config;
	const struct mode *mode = find_mode(c->rw);

	if (p->mix != UINT64_MAX && !mode->mixed)
		return weft_fail(err, -EINVAL, "--mix is for --rw rw and randrw, not for %s",
				 c->rw);
	if (c->depth < c->queues)
		return weft_fail(err, -EINVAL, "--depth %u cannot be spread over --queues %u",
				 c->depth, c->queues);
	if (c->time_ns / c->interval_ns > STEPS_MAX)
		return weft_fail(err, -EINVAL, "--interval is too short for such a long --time");
	if (bench_writes(c) && !p->write_ok)
		return weft_fail(err, -EINVAL,
				 "--rw %s overwrites what the namespace holds; add --write-ok if "
				 "nobody needs that",
				 c->rw);
	if (c->strict && !c->verify)
		return weft_fail(err, -EINVAL, "--strict is for --verify");
	if (c->verify && !bench_writes(c) && !p->seed_given)
		return weft_fail(err, -EINVAL,
				 "--verify with --rw %s checks what an earlier run wrote: give "
				 "its --seed",
				 c->rw);
	return 0;
}

static int take_uri(int argc, char **argv, struct bench_config *config)
{
	if (optind == argc)
		return weft_cli_usage_error(argv[0], "which namespace? It needs a URI");
	if (optind + 1 < argc)
		return weft_cli_usage_error(argv[0], "unexpected \"%s\"", argv[optind + 1]);
	config->uri = argv[optind];
	return EXIT_OK;
}

static int check_uri(struct bench_command *p)
{
	struct weft_options settled;
	int code = weft_host_check(p->name, p->config.uri, &p->connect, p->nsid, &settled);

	if (code == EXIT_OK) {
		p->config.hdgst = settled.hdgst;
		p->config.ddgst = settled.ddgst;
	}
	return code;
}

/* WEFT_CLI_GO_ON, or the exit status. */
static int parse_options(int argc, char **argv, struct bench_command *p)
{
	struct weft_err err = {};
	int code;

	set_defaults(p, argv[0]);
	code = weft_cli_options(argc, argv, options, usage, p);
	if (code != WEFT_CLI_GO_ON)
		return code;
	code = take_uri(argc, argv, &p->config);
	if (code != EXIT_OK)
		return code;
	resolve_defaults(p);
	if (refuse_combination(p, &err) < 0)
		return weft_cli_usage_error(argv[0], "%s", err.text);
	code = check_uri(p);
	return code == EXIT_OK ? WEFT_CLI_GO_ON : code;
}

/* --- Ctrl-C ----------------------------------------------------------------------------------- */

/* How often it came: the first ends the load, the second the wait for I/O in flight, the third the
 * program. */
static atomic_int stop;

static void on_stop_signal(int sig)
{
	static weft_signal_debounce last;

	if (!weft_signal_is_bounce_now(&last) && ++stop > 1)
		signal(sig, SIG_DFL);
}

static void catch_signals(void *arg)
{
	struct sigaction action = { .sa_handler = on_stop_signal };

	(void)arg;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Rather before ten minutes of load than after them: whether it can be made. By its name, what it
 * replaces is an older plot. */
static int check_plot(const char *path, struct weft_err *err)
{
	_cleanup_(weft_draft_free) struct weft_draft draft = {};
	int rc = path ? weft_draft_locate(&draft, path, true, err) : 0;

	if (!path || rc < 0)
		return rc;
	if (faccessat(draft.at.dirfd, ".", W_OK, 0) < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static int connect_and_run(struct bench_command *p, struct bench_result *result, bool *rdma,
			   struct weft_err *err)
{
	struct bench_observer observer = { .stop = &stop, .begin = catch_signals };
	struct weft_options connect = p->connect;
	struct weft_remote remote;
	struct bench_live live;
	int rc;

	bench_connect_options(&p->config, &connect);
	rc = weft_remote_open(&remote, p->name, p->config.uri, p->nsid, &connect, err);
	if (rc == 0) {
		*rdma = weft_counters_rdma(remote.ctrl);
		bench_live_init(&live, p->name, &p->config, &remote.waiting, &observer);
		weft_path_wait_asked(&remote.waiting, "Connect of an I/O queue");
		rc = bench_run(&p->config, remote.ctrl, remote.ns, &observer, result, err);
		weft_path_wait_progress(&remote.waiting, NULL, 0, 0);
		bench_live_end(&live);
	}
	if (!result->left)
		weft_remote_close(&remote);
	return rc;
}

static int report(const struct bench_command *p, const struct bench_result *result, bool rdma)
{
	json_auto_t *json = p->json ? bench_report_json(result, rdma) : NULL;
	struct weft_err err = {};

	if (json)
		weft_print_json(json, false);
	else
		bench_report_text(result);
	weft_cli_flush();
	bench_report_problems(result, p->name);
	if (p->plot && bench_plot(result, p->plot, &err) < 0)
		return weft_cli_failed(p->name, err.text);
	if (!bench_result_fine(result, &err))
		return weft_cli_failed(p->name, err.text);
	return EXIT_OK;
}

int weft_cmd_bench(int argc, char **argv)
{
	struct bench_command command;
	struct bench_result *result;
	struct weft_err err = {};
	bool rdma = false;
	int code = parse_options(argc, argv, &command);

	if (code != WEFT_CLI_GO_ON)
		return code;
	result = calloc(1, sizeof(*result));
	if (!result)
		return weft_cli_failed(argv[0], "no memory");
	if (check_plot(command.plot, &err) < 0 ||
	    connect_and_run(&command, result, &rdma, &err) < 0)
		code = weft_cli_failed(argv[0], err.text);
	else
		code = report(&command, result, rdma);
	/* I/Os are still in flight on memory that must not be freed. */
	if (result->left)
		_exit(weft_cli_end(argv[0], code));
	bench_result_free(result);
	free(result);
	return code;
}
