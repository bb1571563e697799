/* args.c - the options of weft bench: parse and check them. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cpus.h"
#include "base/size.h"
#include "base/units.h"
#include "cli/bench/config.h"
#include "cli/cli.h"
#include "cli/host_options.h"

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

void bench_usage(void)
{
	fputs(usage, stdout);
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < NMODES; i++) {
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	}
	return NULL;
}

/* What the words left behind, until all of them are read. */
struct parsing {
	const char *command;
	struct bench_config *config;
	uint64_t mix; /* UINT64_MAX: not given */
	struct weft_err err;
};

static int parse_count_option(struct parsing *p, const char *name, uint64_t min, uint64_t max,
			      uint64_t *value)
{
	if (!weft_count_parse(optarg, value) && *value >= min && *value <= max)
		return 0;
	return weft_fail(&p->err, -EINVAL,
			 "--%s: expected a number from %" PRIu64 " to %" PRIu64 ", got \"%s\"",
			 name, min, max, optarg);
}

static int parse_number_option(struct parsing *p, const char *name, unsigned min, unsigned max,
			       unsigned *value)
{
	uint64_t wide;
	int rc = parse_count_option(p, name, min, max, &wide);

	if (!rc)
		*value = (unsigned)wide;
	return rc;
}

static int parse_size_option(struct parsing *p, const char *name, uint64_t min, uint64_t max,
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

static int parse_time_option(struct parsing *p, const char *name, uint64_t min, uint64_t *ns)
{
	if (!weft_ns_parse(optarg, ns) && *ns >= min && *ns <= 1000 * 3600 * SECOND)
		return 0;
	return weft_fail(&p->err, -EINVAL,
			 "--%s: expected a time from %s to 1000h, such as 10 (seconds), 500ms or "
			 "2m, got \"%s\"",
			 name, min ? "1ms" : "0", optarg);
}

static int take_mode(struct parsing *p)
{
	const struct mode *mode = find_mode(optarg);

	if (!mode)
		return weft_fail(&p->err, -EINVAL,
				 "--rw: expected read, write, rw, randread, randwrite or randrw, "
				 "got \"%s\"",
				 optarg);
	p->config->rw = mode->name;
	return 0;
}

static int take_cpus(struct parsing *p)
{
	struct weft_err why = { "" };
	int rc = weft_cpus_parse_usable(optarg, &p->config->cpus, &why);

	if (rc < 0)
		return weft_fail(&p->err, rc, "--cpus: %s", why.text);
	sched_getaffinity(0, sizeof(p->config->home_cpus), &p->config->home_cpus);
	return 0;
}

static int take_plot(struct parsing *p)
{
	const char *end = strrchr(optarg, '.');

	if (!end || end == optarg || end[-1] == '/' || strcasecmp(end, ".svg"))
		return weft_fail(&p->err, -EINVAL,
				 "--plot draws SVG: it takes the name of a file that ends in .svg, "
				 "not \"%s\"",
				 optarg);
	p->config->plot = optarg;
	return 0;
}

/* -EALREADY: wrong, and that is said. */
static int take_host(struct parsing *p, int option)
{
	int taken = option == OPT_NS ?
			    weft_host_ns_option(p->command, optarg, &p->config->nsid) :
			    weft_host_option(&p->config->connect, p->command, option, optarg);

	return taken > 0 ? 0 : taken < 0 ? -EALREADY : -ENOENT;
}

static int take_load(struct parsing *p, int option)
{
	struct bench_config *c = p->config;

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
		c->flush_given = true;
		return parse_number_option(p, "flush-every", 0, 1000000000, &c->flush_every);
	default:
		return take_host(p, option);
	}
}

static int take_option(struct parsing *p, int option)
{
	struct bench_config *c = p->config;

	switch (option) {
	case OPT_TIME:
		return parse_time_option(p, "time", SECOND / 1000, &c->time_ns);
	case OPT_WARMUP:
		return parse_time_option(p, "warmup", 0, &c->warmup_ns);
	case OPT_INTERVAL:
		return parse_time_option(p, "interval", SECOND / 1000, &c->interval_ns);
	case OPT_SEED:
		c->seed_given = true;
		return parse_count_option(p, "seed", 0, UINT64_C(1000000000000000), &c->seed);
	case OPT_WRITE_OK:
		c->write_ok = true;
		return 0;
	case OPT_VERIFY:
		c->verify = true;
		return 0;
	case OPT_STRICT:
		c->strict = true;
		return 0;
	case OPT_JSON:
		c->json = true;
		return 0;
	case OPT_PLOT:
		return take_plot(p);
	case 'h':
		c->help = true;
		return 0;
	default:
		return take_load(p, option);
	}
}

static void set_defaults(struct bench_config *c)
{
	*c = (struct bench_config){ .rw = "randread",
				    .bs = 4096,
				    .depth = 32,
				    .jobs = 1,
				    .queues = 1,
				    .time_ns = 10 * SECOND };
	weft_host_options_init(&c->connect);
}

/* A seed that a double holds exactly, so that JSON readers give it back unchanged. */
static void choose_seed(struct bench_config *c)
{
	if (c->seed_given)
		return;
	if (getrandom(&c->seed, sizeof(c->seed), 0) != sizeof(c->seed))
		c->seed = (uint64_t)(uintptr_t)c;
	c->seed %= UINT64_C(1000000000000);
}

static void resolve_defaults(struct bench_config *c, const struct parsing *p)
{
	const struct mode *mode = find_mode(c->rw);

	c->random = mode->random;
	c->read_pct = mode->mixed && p->mix != UINT64_MAX ? (unsigned)p->mix : mode->read_pct;
	if (!c->interval_ns)
		c->interval_ns = c->time_ns > 20 * SECOND ? SECOND : SECOND / 10;
	if (c->verify && !c->flush_given)
		c->flush_every = FLUSH_VERIFY;
	choose_seed(c);
}

static int refuse_combination(const struct bench_config *c, const struct parsing *p,
			      struct weft_err *err)
{
	const struct mode *mode = find_mode(c->rw);

	if (p->mix != UINT64_MAX && !mode->mixed)
		return weft_fail(err, -EINVAL, "--mix is for --rw rw and randrw, not for %s",
				 c->rw);
	if (c->depth < c->queues)
		return weft_fail(err, -EINVAL, "--depth %u cannot be spread over --queues %u",
				 c->depth, c->queues);
	if (c->time_ns / c->interval_ns > STEPS_MAX)
		return weft_fail(err, -EINVAL, "--interval is too short for such a long --time");
	if (bench_writes(c) && !c->write_ok)
		return weft_fail(err, -EINVAL,
				 "--rw %s overwrites what the namespace holds; add --write-ok if "
				 "nobody needs that",
				 c->rw);
	if (c->strict && !c->verify)
		return weft_fail(err, -EINVAL, "--strict is for --verify");
	if (c->verify && !bench_writes(c) && !c->seed_given)
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

static int check_uri(const char *command, struct bench_config *config)
{
	struct weft_options settled;
	int code = weft_host_check(command, config->uri, &config->connect, config->nsid, &settled);

	if (code == EXIT_OK) {
		config->hdgst = settled.hdgst;
		config->ddgst = settled.ddgst;
	}
	return code;
}

int bench_args(int argc, char **argv, struct bench_config *config)
{
	struct parsing p = { .command = argv[0], .config = config, .mix = UINT64_MAX };
	int option, rc;

	set_defaults(config);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = take_option(&p, option);
		if (rc == -EALREADY)
			return EXIT_USAGE;
		if (rc == -ENOENT)
			return weft_cli_wrong_option(argv, option, options);
		if (rc < 0)
			return weft_cli_usage_error(argv[0], "%s", p.err.text);
		if (config->help)
			return EXIT_OK;
	}
	rc = take_uri(argc, argv, config);
	if (rc != EXIT_OK)
		return rc;
	resolve_defaults(config, &p);
	if (refuse_combination(config, &p, &p.err) < 0)
		return weft_cli_usage_error(argv[0], "%s", p.err.text);
	return check_uri(argv[0], config);
}
