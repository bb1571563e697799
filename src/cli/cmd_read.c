/* cmd_read.c - weft read: a range of a namespace to standard output or a file. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cp/cp.h"
#include "cli/host_options.h"

static const char usage[] =
	"usage: weft read [OPTION]... URI --length N\n"
	"\n"
	"Reads from a namespace: nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may be\n"
	"left out if there is only one. A terminal gets a hexdump.\n"
	"\n"
	"      --offset N      from this byte on, a multiple of the block size (0)\n"
	"      --length N      so many bytes, a multiple of the block size\n"
	"  -o, --output FILE   to this file instead of standard output\n"
	"      --force         replace FILE if it is there\n"
	"      --hex           a hexdump, also where standard output is no terminal\n"
	"      --json          with -o: what was done, as JSON\n"
	"  -q, --quiet         no progress, no summary\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"Numbers may end in K, M, G or T. A whole namespace: \"weft cp URI FILE\".\n" WEFT_URI_USAGE
	"\n"
	"  weft read nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:default --ns 1 --length 4K\n";

static const struct weft_cli_option options[] = {
	WEFT_CLI_SIZE("offset", struct weft_cp, from_offset),
	WEFT_CLI_SIZE("length", struct weft_cp, length),
	WEFT_CLI_TEXT("output", 'o', struct weft_cp, to),
	WEFT_CLI_FLAG("force", 0, struct weft_cp, force),
	WEFT_CLI_FLAG("hex", 0, struct weft_cp, hex),
	WEFT_CLI_FLAG("json", 0, struct weft_cp, json),
	WEFT_CLI_FLAG("quiet", 'q', struct weft_cp, quiet),
	WEFT_NS_OPTION(struct weft_cp, nsid),
	WEFT_HOST_OPTIONS(struct weft_cp, connect),
	{},
};

static int check_read_options(const struct weft_cp *what)
{
	bool to_stdout = !strcmp(what->to, "-");

	if (what->length == WEFT_CLI_ALL)
		return weft_cli_usage_error(what->command, "how much? --length says it; \"weft cp "
							   "URI FILE\" reads all");
	if (what->hex && !to_stdout)
		return weft_cli_usage_error(what->command, "--hex does not go with -o");
	if (what->json && to_stdout)
		return weft_cli_usage_error(what->command, "--json goes with -o FILE");
	if (weft_cli_is_uri(what->to))
		return weft_cli_usage_error(what->command, "-o takes a file; \"weft cp FROM TO\" "
							   "copies between namespaces");
	return weft_host_check(what->command, what->from, &what->connect, what->nsid, NULL);
}

int weft_cmd_read(int argc, char **argv)
{
	struct weft_cp what;
	int status;

	weft_cp_init(&what, argv[0]);
	what.doing = "reading";
	what.did = "read";
	what.been = "read";
	what.to = "-";
	status = weft_cli_options(argc, argv, options, usage, &what);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420/NQN --length 4K") != EXIT_OK)
		return EXIT_USAGE;
	what.from = argv[optind];
	status = check_read_options(&what);
	if (status != EXIT_OK)
		return status;
	if (!strcmp(what.to, "-")) {
		what.silent = true;
		what.hex = what.hex || isatty(STDOUT_FILENO);
		/* A bar would run through the dump. */
		what.quiet = what.quiet || isatty(STDOUT_FILENO);
	}
	return weft_cp(&what);
}
