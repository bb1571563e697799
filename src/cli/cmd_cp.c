/* cmd_cp.c - weft cp: copy a file, a pipe or a namespace to another. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cp/cp.h"
#include "cli/host_options.h"

static const char usage[] =
	"usage: weft cp [OPTION]... FROM TO\n"
	"\n"
	"Copies FROM to TO. Each is the URI of a namespace, a file, a block device, or -\n"
	"for a pipe. A URI is nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may be left\n"
	"out if there is only one. Zeroes become holes, on a namespace deallocated\n"
	"blocks, where that is possible. What is copied is flushed before this ends.\n"
	"\n"
	"      --offset N      FROM from this byte on (0)\n"
	"      --length N      only so many bytes of FROM (all of it)\n"
	"      --to-offset N   TO from this byte on, if it is no file that is made (0)\n"
	"      --verify        read TO back and compare\n"
	"      --force         replace TO if it is a file that is there\n"
	"      --pad           fill up the last block of a namespace with zeroes\n"
	"      --no-sparse     write zeroes like anything else\n"
	"      --jobs N        threads, each with a queue of its own (4)\n"
	"      --depth N       pieces that each has in flight (8)\n"
	"      --bs SIZE       of a piece (1M)\n"
	"      --json          what was done, as JSON\n"
	"  -q, --quiet         no progress, no summary\n"
	"  -v, --verbose       tell what is about to be done\n" WEFT_HOST_USAGE
	"  -h, --help          this text\n" WEFT_URI_USAGE "\n"
	"  weft cp disk.img 'nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:default?nsid=1'\n";

enum {
	OPT_OFFSET = 256,
	OPT_LENGTH,
	OPT_TO_OFFSET,
	OPT_VERIFY,
	OPT_FORCE,
	OPT_PAD,
	OPT_NO_SPARSE,
	OPT_JOBS,
	OPT_DEPTH,
	OPT_BS,
	OPT_JSON
};

static const struct option options[] = {
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "length", required_argument, NULL, OPT_LENGTH },
	{ "to-offset", required_argument, NULL, OPT_TO_OFFSET },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "pad", no_argument, NULL, OPT_PAD },
	{ "no-sparse", no_argument, NULL, OPT_NO_SPARSE },
	{ "jobs", required_argument, NULL, OPT_JOBS },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	WEFT_HOST_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{},
};

static int take_count(const char *command, const char *name, uint32_t max, uint32_t *count)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 10);

	if (*optarg >= '0' && *optarg <= '9' && !*end && value && value <= max) {
		*count = (uint32_t)value;
		return 1;
	}
	weft_cli_usage_error(command, "--%s: expected a number from 1 to %u, got \"%s\"", name, max,
			     optarg);
	return -1;
}

static int take_piece(struct weft_cp *what)
{
	uint64_t bytes;

	if (weft_cli_size(what->command, "bs", optarg, &bytes) < 0)
		return -1;
	if (bytes >= 512 && bytes <= 64u << 20) {
		what->piece = (uint32_t)bytes;
		return 1;
	}
	weft_cli_usage_error(what->command, "--bs: expected 512 to 64M, got \"%s\"", optarg);
	return -1;
}

/* 1: taken; 0: not known; -1: wrong, and that is said. */
static int take_flag(void *arg, int option)
{
	struct weft_cp *what = arg;

	switch (option) {
	case OPT_OFFSET:
		return weft_cli_size(what->command, "offset", optarg, &what->from_offset);
	case OPT_LENGTH:
		return weft_cli_size(what->command, "length", optarg, &what->length);
	case OPT_TO_OFFSET:
		return weft_cli_size(what->command, "to-offset", optarg, &what->to_offset);
	case OPT_VERIFY:
		return weft_cli_set(&what->verify);
	case OPT_FORCE:
		return weft_cli_set(&what->force);
	case OPT_PAD:
		return weft_cli_set(&what->pad);
	case OPT_NO_SPARSE:
		what->sparse = false;
		return 1;
	case OPT_JSON:
		return weft_cli_set(&what->json);
	case 'q':
		return weft_cli_set(&what->quiet);
	case 'v':
		return weft_cli_set(&what->verbose);
	case OPT_JOBS:
		return take_count(what->command, "jobs", 64, &what->jobs);
	case OPT_DEPTH:
		return take_count(what->command, "depth", 1024, &what->depth);
	case OPT_BS:
		return take_piece(what);
	default:
		return weft_host_option(&what->connect, what->command, option, optarg);
	}
}

static int check_words(const struct weft_cp *what, char *const *words, int count)
{
	if (count != 2)
		return weft_cli_usage_error(what->command,
					    "expected FROM and TO, as in \"weft cp "
					    "disk.img nvme+tcp://127.0.0.1:4420/NQN\"");
	if (!strcmp(words[1], "-") && what->json)
		return weft_cli_usage_error(what->command, "--json does not go with -: both would "
							   "be on standard output");
	if (!strcmp(words[1], "-") && what->verify)
		return weft_cli_usage_error(
			what->command, "--verify does not go with -: a pipe cannot be read back");
	for (int i = 0; i < count; i++) {
		if (weft_cli_is_uri(words[i]) &&
		    weft_host_check(what->command, words[i], &what->connect, 0, NULL) != EXIT_OK)
			return EXIT_USAGE;
	}
	return EXIT_OK;
}

int weft_cmd_cp(int argc, char **argv)
{
	struct weft_cp what;
	int status;

	weft_cp_init(&what, argv[0]);
	what.doing = "copying";
	what.did = "copied";
	what.been = "copied";
	what.sparse = true;
	what.to_option = "--to-offset";
	status = weft_cli_options(argc, argv, ":hqv", options, usage, take_flag, &what);
	if (status != WEFT_CLI_GO_ON)
		return status;
	status = check_words(&what, argv + optind, argc - optind);
	if (status != EXIT_OK)
		return status;
	what.from = argv[optind];
	what.to = argv[optind + 1];
	if (what.jobs > what.connect.queues)
		what.connect.queues = what.jobs;
	return weft_cp(&what);
}
