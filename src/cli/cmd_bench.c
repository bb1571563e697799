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
#include "base/draft.h"
#include "base/echo.h"
#include "base/size.h"
#include "base/units.h"
#include "cli/bench/report.h"
#include "cli/cli.h"
#include "cli/counters.h"
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

enum {
	OPT_RW = 256,
	OPT_MIX,
	OPT_WRITE_OK,
	OPT_BS,
	OPT_DEPTH,
	OPT_JOBS,
	OPT_QUEUES,
	OPT_CPUS,
	OPT_TIME,
	OPT_WARMUP,
	OPT_RATE,
	OPT_OFFSET,
	OPT_SIZE,
	OPT_FLUSH,
	OPT_VERIFY,
	OPT_STRICT,
	OPT_SEED,
	OPT_INTERVAL,
	OPT_PLOT,
	OPT_JSON
};

static const struct option options[] = {
	{ "rw", required_argument, NULL, OPT_RW },
	{ "mix", required_argument, NULL, OPT_MIX },
	{ "write-ok", no_argument, NULL, OPT_WRITE_OK },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "jobs", required_argument, NULL, OPT_JOBS },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "flush-every", required_argument, NULL, OPT_FLUSH },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "json", no_argument, NULL, OPT_JSON },
	WEFT_NS_OPTION,
	WEFT_HOST_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{},
};

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
	struct weft_err err; /* what is wrong with an option */
};

static int parse_count_option(struct bench_command *p, const char *name, uint64_t min, uint64_t max,
			      uint64_t *value)
{
	if (!weft_count_parse(optarg, value) && *value >= min && *value <= max)
		return 0;
	return weft_fail(&p->err, -EINVAL,
			 "--%s: expected a number from %" PRIu64 " to %" PRIu64 ", got \"%s\"",
			 name, min, max, optarg);
}

static int parse_number_option(struct bench_command *p, const char *name, unsigned min,
			       unsigned max, unsigned *value)
{
	uint64_t wide;
	int rc = parse_count_option(p, name, min, max, &wide);

	if (!rc)
		*value = (unsigned)wide;
	return rc;
}

static int parse_size_option(struct bench_command *p, const char *name, uint64_t min, uint64_t max,
			     uint64_t *value)
{
	struct weft_err doubt = { "" };
	char least[32], most[32];

	if (!weft_size_parse(optarg, value) && *value >= min && *value <= max)
		return 0;
	if (weft_size_doubt(optarg, &doubt))
		return weft_fail(&p->err, -EINVAL, "--%s: %s", name, doubt.text);
	weft_size_format(min, least, sizeof(least));
	weft_size_format(max, most, sizeof(most));
	return weft_fail(&p->err, -EINVAL,
			 "--%s: expected a size from %s%s%s, such as 4K, 1M or 2G, got \"%s\"",
			 name, least, max < INT64_MAX ? " to " : " on", max < INT64_MAX ? most : "",
			 optarg);
}

static int parse_time_option(struct bench_command *p, const char *name, uint64_t min, uint64_t *ns)
{
	if (!weft_ns_parse(optarg, ns) && *ns >= min && *ns <= 1000 * 3600 * SECOND)
		return 0;
	return weft_fail(&p->err, -EINVAL,
			 "--%s: expected a time from %s to 1000h, such as 10 (seconds), 500ms or "
			 "2m, got \"%s\"",
			 name, min ? "1ms" : "0", optarg);
}

static int take_mode(struct bench_command *p)
{
	const struct mode *mode = find_mode(optarg);

	if (!mode)
		return weft_fail(&p->err, -EINVAL,
				 "--rw: expected read, write, rw, randread, randwrite or randrw, "
				 "got \"%s\"",
				 optarg);
	p->config.rw = mode->name;
	return 0;
}

static int take_cpus(struct bench_command *p)
{
	struct weft_err why = { "" };
	int rc = weft_cpus_parse_usable(optarg, &p->config.cpus, &why);

	if (rc < 0)
		return weft_fail(&p->err, rc, "--cpus: %s", why.text);
	sched_getaffinity(0, sizeof(p->config.home_cpus), &p->config.home_cpus);
	return 0;
}

static int take_plot(struct bench_command *p)
{
	const char *end = strrchr(optarg, '.');

	if (!end || end == optarg || end[-1] == '/' || strcasecmp(end, ".svg"))
		return weft_fail(&p->err, -EINVAL,
				 "--plot draws SVG: it takes the name of a file that ends in .svg, "
				 "not \"%s\"",
				 optarg);
	p->plot = optarg;
	return 0;
}

/* -EALREADY: wrong, and that is said. */
static int take_host(struct bench_command *p, int option)
{
	int taken = option == OPT_NS ? weft_host_ns_option(p->name, optarg, &p->nsid) :
				       weft_host_option(&p->connect, p->name, option, optarg);

	return taken > 0 ? 0 : taken < 0 ? -EALREADY : -ENOENT;
}

static int take_load(struct bench_command *p, int option)
{
	struct bench_config *c = &p->config;

	switch (option) {
	case OPT_RW:
		return take_mode(p);
	case OPT_MIX:
		return parse_count_option(p, "mix", 0, 100, &p->mix);
	case OPT_BS:
		return parse_size_option(p, "bs", 512, BS_MAX, &c->bs);
	case OPT_DEPTH:
		return parse_number_option(p, "depth", 1, DEPTH_MAX, &c->depth);
	case OPT_JOBS:
		return parse_number_option(p, "jobs", 1, JOBS_MAX, &c->jobs);
	case OPT_QUEUES:
		return parse_number_option(p, "queues", 1, QUEUES_MAX, &c->queues);
	case OPT_CPUS:
		return take_cpus(p);
	case OPT_RATE:
		return parse_count_option(p, "rate", 1, UINT64_C(1000000000), &c->rate);
	case OPT_OFFSET:
		return parse_size_option(p, "offset", 0, INT64_MAX, &c->offset);
	case OPT_SIZE:
		return parse_size_option(p, "size", 512, INT64_MAX, &c->size);
	case OPT_FLUSH:
		p->flush_given = true;
		return parse_number_option(p, "flush-every", 0, 1000000000, &c->flush_every);
	default:
		return take_host(p, option);
	}
}

static int take_option(struct bench_command *p, int option)
{
	struct bench_config *c = &p->config;

	switch (option) {
	case OPT_TIME:
		return parse_time_option(p, "time", SECOND / 1000, &c->time_ns);
	case OPT_WARMUP:
		return parse_time_option(p, "warmup", 0, &c->warmup_ns);
	case OPT_INTERVAL:
		return parse_time_option(p, "interval", SECOND / 1000, &c->interval_ns);
	case OPT_SEED:
		p->seed_given = true;
		return parse_count_option(p, "seed", 0, UINT64_C(1000000000000000), &c->seed);
	case OPT_WRITE_OK:
		p->write_ok = true;
		return 0;
	case OPT_VERIFY:
		c->verify = true;
		return 0;
	case OPT_STRICT:
		c->strict = true;
		return 0;
	case OPT_JSON:
		p->json = true;
		return 0;
	case OPT_PLOT:
		return take_plot(p);
	default:
		return take_load(p, option);
	}
}

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
	int option, rc;

	set_defaults(p, argv[0]);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (option == 'h')
			return fputs(usage, stdout) < 0 ? EXIT_FAILED : EXIT_OK;
		rc = take_option(p, option);
		if (rc == -EALREADY)
			return EXIT_USAGE;
		if (rc == -ENOENT)
			return weft_cli_wrong_option(argv, option, options);
		if (rc < 0)
			return weft_cli_usage_error(argv[0], "%s", p->err.text);
	}
	rc = take_uri(argc, argv, &p->config);
	if (rc != EXIT_OK)
		return rc;
	resolve_defaults(p);
	if (refuse_combination(p, &p->err) < 0)
		return weft_cli_usage_error(argv[0], "%s", p->err.text);
	rc = check_uri(p);
	return rc == EXIT_OK ? WEFT_CLI_GO_ON : rc;
}

/* --- Ctrl-C ----------------------------------------------------------------------------------- */

/* How often it came: the first ends the load, the second the wait for I/O in flight, the third the
 * program. */
static atomic_int stop;

static void on_signal(int sig)
{
	static weft_echo last;

	if (!weft_is_echo_now(&last) && ++stop > 1)
		signal(sig, SIG_DFL);
}

static void catch_signals(void *arg)
{
	struct sigaction action = { .sa_handler = on_signal };

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
	int rc = path ? weft_draft_place(&draft, path, true, err) : 0;

	if (!path || rc < 0)
		return rc;
	if (faccessat(draft.at.folder, ".", W_OK, 0) < 0)
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
		bench_live_init(&live, p->name, &p->config, &observer);
		rc = bench_run(&p->config, remote.ctrl, remote.ns, &observer, result, err);
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
