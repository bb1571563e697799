/* cmd_cp.c - weft cp: copy a file, a pipe or a namespace to another. */
#include <getopt.h>
#include <inttypes.h>
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

static int take_count(const char *command, const struct weft_cli_option *option, const char *value,
		      void *to)
{
	char *end;
	unsigned long count = strtoul(value, &end, 10);

	if (*value >= '0' && *value <= '9' && !*end && count && count <= option->max) {
		*(uint32_t *)to = (uint32_t)count;
		return 1;
	}
	weft_cli_usage_error(command, "--%s: expected a number from 1 to %" PRIu64 ", got \"%s\"",
			     option->name, option->max, value);
	return -1;
}

static int take_piece(const char *command, const struct weft_cli_option *option, const char *value,
		      void *to)
{
	uint64_t bytes;

	if (weft_cli_size(command, option->name, value, &bytes) < 0)
		return -1;
	if (bytes >= 512 && bytes <= 64u << 20) {
		*(uint32_t *)to = (uint32_t)bytes;
		return 1;
	}
	weft_cli_usage_error(command, "--bs: expected 512 to 64M, got \"%s\"", value);
	return -1;
}

static int take_no_sparse(const char *command, const struct weft_cli_option *option,
			  const char *value, void *to)
{
	*(bool *)to = false;
	return 1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_SIZE("offset", struct weft_cp, from_offset),
	WEFT_CLI_SIZE("length", struct weft_cp, length),
	WEFT_CLI_SIZE("to-offset", struct weft_cp, to_offset),
	WEFT_CLI_FLAG("verify", 0, struct weft_cp, verify),
	WEFT_CLI_FLAG("force", 0, struct weft_cp, force),
	WEFT_CLI_FLAG("pad", 0, struct weft_cp, pad),
	{ .name = "no-sparse",
	  .take = take_no_sparse,
	  .to = WEFT_CLI_AT(struct weft_cp, sparse, bool) },
	WEFT_CLI_OWN("jobs", take_count, .to = WEFT_CLI_AT(struct weft_cp, jobs, uint32_t),
		     .max = 64),
	WEFT_CLI_OWN("depth", take_count, .to = WEFT_CLI_AT(struct weft_cp, depth, uint32_t),
		     .max = 1024),
	WEFT_CLI_OWN("bs", take_piece, .to = WEFT_CLI_AT(struct weft_cp, piece, uint32_t)),
	WEFT_CLI_FLAG("json", 0, struct weft_cp, json),
	WEFT_CLI_FLAG("quiet", 'q', struct weft_cp, quiet),
	WEFT_CLI_FLAG("verbose", 'v', struct weft_cp, verbose),
	WEFT_HOST_OPTIONS(struct weft_cp, connect),
	{},
};

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
	status = weft_cli_options(argc, argv, options, usage, &what);
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
