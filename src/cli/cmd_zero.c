/* cmd_zero.c - weft zero: Write Zeroes to a range of a namespace. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/erase.h"

static const char usage[] =
	"usage: weft zero [OPTION]... URI --offset N --length N\n"
	"       weft zero [OPTION]... URI --all\n"
	"\n"
	"Writes zeroes to a namespace: nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may\n"
	"be left out if there is only one. No data travels (Write Zeroes). What was there\n"
	"is lost. It is flushed before this ends.\n"
	"\n" WEFT_ERASE_USAGE
	"      --deac          the space may be given back (deallocated)\n" WEFT_NS_USAGE
		WEFT_HOST_USAGE "  -h, --help          this text\n"
	"\n"
	"Numbers may end in K, M, G or T.\n" WEFT_URI_USAGE "\n"
	"  weft zero 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1' \\\n"
	"      --offset 1M --length 64K\n";

static const struct weft_cli_option options[] = {
	WEFT_ERASE_OPTIONS,
	WEFT_CLI_FLAG("deac", 0, struct weft_erase, deac),
	WEFT_NS_OPTION(struct weft_erase, nsid),
	WEFT_HOST_OPTIONS(struct weft_erase, connect),
	{},
};

int weft_cmd_zero(int argc, char **argv)
{
	struct weft_erase what = {
		.command = argv[0], .doing = "zeroing", .did = "zeroed", .op = WEFT_ZERO
	};
	int status;

	weft_host_options_init(&what.connect);
	status = weft_cli_options(argc, argv, options, usage, &what);
	return status == WEFT_CLI_GO_ON ? weft_erase(&what, argc, argv) : status;
}
