/* cmd_write.c - weft write: standard input or a file to a range of a namespace. */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cp/cp.h"
#include "cli/host_options.h"

static const char usage[] =
	"usage: weft write [OPTION]... URI\n"
	"\n"
	"Writes to a namespace: nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may be\n"
	"left out if there is only one. What is written is flushed before this ends.\n"
	"\n"
	"      --offset N      from this byte on, a multiple of the block size (0)\n"
	"      --length N      only so many bytes of the input (all of it)\n"
	"  -i, --input FILE    from this file instead of standard input\n"
	"      --pad           fill up the last block with zeroes\n"
	"      --fua           every command is durable when it completes\n"
	"      --verify        read it back and compare\n"
	"      --json          what was done, as JSON\n"
	"  -q, --quiet         no progress, no summary\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"Numbers may end in K, M, G or T.\n" WEFT_URI_USAGE "\n"
	"  echo hello | weft write --pad --offset 1M \\\n"
	"      'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1'\n";

static const struct weft_cli_option options[] = {
	WEFT_CLI_SIZE("offset", struct weft_cp, to_offset),
	WEFT_CLI_SIZE("length", struct weft_cp, length),
	WEFT_CLI_TEXT("input", 'i', struct weft_cp, from),
	WEFT_CLI_FLAG("pad", 0, struct weft_cp, pad),
	WEFT_CLI_FLAG("fua", 0, struct weft_cp, fua),
	WEFT_CLI_FLAG("verify", 0, struct weft_cp, verify),
	WEFT_CLI_FLAG("json", 0, struct weft_cp, json),
	WEFT_CLI_FLAG("quiet", 'q', struct weft_cp, quiet),
	WEFT_NS_OPTION(struct weft_cp, nsid),
	WEFT_HOST_OPTIONS(struct weft_cp, connect),
	{},
};

static int check_write_options(const struct weft_cp *what)
{
	if (weft_cli_is_uri(what->from))
		return weft_cli_usage_error(what->command, "-i takes a file; \"weft cp FROM TO\" "
							   "copies between namespaces");
	return weft_host_check(what->command, what->to, &what->connect, what->nsid, NULL);
}

int weft_cmd_write(int argc, char **argv)
{
	struct weft_cp what;
	int status;

	weft_cp_init(&what, argv[0]);
	what.doing = "writing";
	what.did = "wrote";
	what.been = "written";
	what.from = "-";
	status = weft_cli_options(argc, argv, options, usage, &what);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420/NQN -i FILE") != EXIT_OK)
		return EXIT_USAGE;
	what.to = argv[optind];
	status = check_write_options(&what);
	return status == EXIT_OK ? weft_cp(&what) : status;
}
