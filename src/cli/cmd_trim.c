/* cmd_trim.c - weft trim: deallocate a range of a namespace (Dataset Management). */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/erase.h"

static const char usage[] =
	"usage: weft trim [OPTION]... URI --offset N --length N\n"
	"       weft trim [OPTION]... URI --all\n"
	"\n"
	"Deallocates a range of a namespace (Dataset Management):\n"
	"nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may be left out if there is only\n"
	"one. What was there is lost; what is read there then is the controller's choice\n"
	"(DLFEAT in \"weft id\"). \"weft zero --deac\" makes it zeroes.\n"
	"\n" WEFT_ERASE_USAGE WEFT_NS_USAGE WEFT_HOST_USAGE "  -h, --help          this text\n"
	"\n"
	"Numbers may end in K, M, G or T.\n" WEFT_URI_USAGE "\n"
	"  weft trim 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1' --all\n";

static const struct weft_cli_option options[] = {
	WEFT_ERASE_OPTIONS,
	WEFT_NS_OPTION(struct weft_erase, nsid),
	WEFT_HOST_OPTIONS(struct weft_erase, connect),
	{},
};

int weft_cmd_trim(int argc, char **argv)
{
	struct weft_erase what = {
		.command = argv[0], .doing = "trimming", .did = "trimmed", .op = WEFT_TRIM
	};
	int status;

	weft_host_options_init(&what.connect);
	status = weft_cli_options(argc, argv, options, usage, &what);
	return status == WEFT_CLI_GO_ON ? weft_erase(&what, argc, argv) : status;
}
