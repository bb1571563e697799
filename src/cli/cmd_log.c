/* cmd_log.c - weft log: Get Log Page, decoded, as JSON, or as raw bytes. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/hexdump.h"
#include "cli/host_options.h"
#include "cli/log/log.h"
#include "cli/print.h"

static const char usage[] =
	"usage: weft log [OPTION]... PAGE URI\n"
	"\n"
	"A log page of the controller at URI. PAGE is one of these, a name that nvme-cli\n"
	"has for it, such as smart-log, or a number:\n"
	"\n"
	"  supported    which log pages there are\n"
	"  error        commands that failed, the newest first\n"
	"  smart        health, and what was read and written\n"
	"  firmware     firmware slots\n"
	"  changed-ns   namespaces that changed since this host connected\n"
	"  effects      which commands there are, and what they change\n"
	"  endurance    the health of an endurance group\n"
	"  ana          how the controller reaches its namespaces\n"
	"  features     which features there are\n"
	"  reservation  what became of this host's registrations and reservations\n"
	"\n"
	"      --json          as JSON, with the names that nvme-cli has for the fields\n"
	"      --hex           a hexdump; so is a page by its number, without --json\n"
	"  -b, --raw-binary    the bytes, to standard output\n"
	"      --length N      of a page by its number: so many bytes (512)\n"
	"      --offset N      of a page by its number: from this byte on (0)\n"
	"      --group-id N    endurance: of this group (1)\n"
	"      --ns N          smart, or a number: of this namespace (of all)\n" WEFT_HOST_USAGE
	"  -h, --help          this text\n" WEFT_URI_USAGE "\n"
	"  weft log smart nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default\n";

enum { LENGTH_DEFAULT = 512, LENGTH_MAX = 16 << 20, PIECE_MAX = 64 << 10 };

struct flags {
	const char *command, *name, *uri;
	const struct log_page *page; /* NULL: by its number */
	struct weft_options connect;
	uint64_t lid, length, offset, group; /* length and group: 0: not given */
	uint32_t nsid;
	bool json, hex, binary;
};

/* --- asking ----------------------------------------------------------------------------------- */

static int describe_refusal(const struct flags *flags, uint16_t status, struct weft_err *err)
{
	struct weft_uri_buf place = weft_uri_subsystem(flags->uri);

	if ((status & 0x7ff) == (NVME_SCT_CMD_SPECIFIC << 8 | NVME_SC_INVALID_LOG_PAGE))
		return weft_fail(err, -EOPNOTSUPP,
				 "%s has no log page \"%s\"; \"weft log supported %s\" lists those "
				 "that it has, if it tells",
				 place.uri, flags->name, place.uri);
	return weft_fail(err, -EIO, "%s: log page \"%s\": %s (NVMe status 0x%x)", place.uri,
			 flags->name, weft_status_text(status), status & 0x7ff);
}

static uint32_t page_length(const struct flags *flags, const struct nvme_id_ctrl *id)
{
	if (flags->page)
		return flags->page->size(id);
	return flags->length ? (uint32_t)flags->length : LENGTH_DEFAULT;
}

/* A controller may answer for a namespace with what it counted for all. */
static void warn_not_per_ns(const struct flags *flags, const struct nvme_id_ctrl *id)
{
	if (flags->lid == NVME_LOG_LID_SMART && flags->nsid &&
	    !(id->lpa & NVME_CTRL_LPA_SMART_PER_NS))
		fprintf(stderr,
			"%s: warning: %s does not count by namespace (LPA): these are the counters of "
			"the whole controller\n",
			flags->command, weft_uri_subsystem(flags->uri).uri);
}

static uint32_t piece_length(const struct weft_remote *remote)
{
	uint32_t most = remote->info.transfer_max;

	return most >= 4 && most < PIECE_MAX ? most & ~3u : PIECE_MAX;
}

static int read_page(const struct flags *flags, struct weft_remote *remote, void **page,
		     uint32_t *length, struct weft_err *err)
{
	_Alignas(8) char id[NVME_IDENTIFY_DATA_SIZE];
	struct log_ask ask = {
		.lid = (uint8_t)flags->lid,
		.nsid = flags->nsid ? flags->nsid : NVME_NSID_BROADCAST,
		.offset = flags->offset,
	};
	int rc = weft_identify(remote->ctrl, NVME_IDENTIFY_CNS_CTRL, 0, id, err);

	if (rc < 0)
		return rc;
	*length = ask.length = page_length(flags, (const void *)id);
	if (flags->page && flags->page->of_group)
		ask.lsi = flags->group ? (uint16_t)flags->group : 1;
	*page = calloc(1, *length);
	if (!*page)
		return weft_fail(err, -ENOMEM, "no memory for %" PRIu32 " bytes", *length);
	rc = weft_log_read(remote->ctrl, &ask, piece_length(remote), *page, err);
	if (rc == 0)
		warn_not_per_ns(flags, (const void *)id);
	return rc > 0 ? describe_refusal(flags, (uint16_t)rc, err) : rc;
}

/* --- printing --------------------------------------------------------------------------------- */

static void print_hex(const struct flags *flags, const void *page, uint32_t length)
{
	struct weft_hexdump dump = { .out = stdout, .offset = flags->offset };

	weft_hexdump(&dump, page, length);
	weft_hexdump_end(&dump);
}

static void print_page(const struct flags *flags, const void *page, uint32_t length)
{
	if (flags->binary) {
		fwrite(page, 1, length, stdout);
	} else if (flags->hex || !flags->page) {
		print_hex(flags, page, length);
	} else if (flags->json) {
		json_auto_t *json = flags->page->json(page, length);

		weft_print_json(json, false);
	} else {
		printf("%s\n", flags->page->title);
		flags->page->print(page, length);
	}
}

/* --- the command ------------------------------------------------------------------------------ */

/* A page is read in dwords. */
static int take_dwords(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	if (weft_cli_take_number(command, option, value, to) < 0)
		return -1;
	if (*(uint64_t *)to % 4 == 0)
		return 1;
	weft_cli_usage_error(command, "--%s: expected a multiple of 4, got \"%s\"", option->name,
			     value);
	return -1;
}

static int take_length(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	if (take_dwords(command, option, value, to) < 0)
		return -1;
	if (*(uint64_t *)to)
		return 1;
	weft_cli_usage_error(command, "--length 0 is nothing");
	return -1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_CLI_FLAG("hex", 0, struct flags, hex),
	WEFT_CLI_FLAG("raw-binary", 'b', struct flags, binary),
	WEFT_CLI_OWN("length", take_length, .to = WEFT_CLI_AT(struct flags, length, uint64_t),
		     .max = LENGTH_MAX),
	WEFT_CLI_OWN("offset", take_dwords, .to = WEFT_CLI_AT(struct flags, offset, uint64_t),
		     .max = INT64_MAX & ~3),
	WEFT_CLI_NUMBER("group-id", 0, struct flags, group, UINT16_MAX),
	WEFT_NS_OPTION(struct flags, nsid),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

/* "weft log smart URI", or which page would have been right. */
static int take_name(struct flags *flags, const char *name)
{
	const char *names[32] = { NULL };

	flags->name = name;
	flags->page = weft_log_page_named(name);
	if (flags->page) {
		flags->lid = flags->page->lid;
		return EXIT_OK;
	}
	if (weft_cli_is_number(name, UINT8_MAX, &flags->lid))
		return EXIT_OK;
	for (size_t i = 0; weft_log_pages[i].name; i++)
		names[i] = weft_log_pages[i].name;
	return weft_cli_unknown(flags->command, "log page", name, names);
}

static int check_log_options(const struct flags *flags)
{
	const struct log_page *page = flags->page;

	if (flags->json + flags->hex + flags->binary > 1)
		return weft_cli_usage_error(flags->command,
					    "--json, --hex and --raw-binary do not go together");
	if (!page && flags->json)
		return weft_cli_usage_error(flags->command,
					    "--json: the fields of log page %s have no names here; "
					    "--hex and --raw-binary show it",
					    flags->name);
	if (page && (flags->length || flags->offset))
		return weft_cli_usage_error(flags->command,
					    "--length and --offset go with a page's "
					    "number, and not with --json");
	if (flags->group && !(page && page->of_group))
		return weft_cli_usage_error(flags->command, "--group-id goes with endurance");
	if (flags->nsid && page && !page->of_ns)
		return weft_cli_usage_error(flags->command,
					    "--ns goes with smart, or with a number");
	return weft_host_check(flags->command, flags->uri, &flags->connect, flags->nsid, NULL);
}

static int run_log(const struct flags *flags)
{
	_cleanup_(weft_freep) void *page = NULL;
	struct weft_remote remote;
	struct weft_err err = { "" };
	uint32_t length = 0;
	int rc = weft_remote_connect(&remote, flags->command, flags->uri, &flags->connect, &err);

	if (rc == 0) {
		weft_remote_hold_ns(&remote, flags->nsid);
		rc = read_page(flags, &remote, &page, &length, &err);
	}
	weft_remote_close(&remote);
	if (rc < 0)
		return weft_cli_failed(flags->command, err.text);
	print_page(flags, page, length);
	return EXIT_OK;
}

int weft_cmd_log(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (argc - optind != 2)
		return weft_cli_usage_error(argv[0],
					    "expected PAGE and URI, as in \"weft log smart "
					    "nvme+tcp://127.0.0.1:4420/NQN\"");
	flags.uri = argv[optind + 1];
	status = take_name(&flags, argv[optind]);
	if (status == EXIT_OK && flags.json && !flags.page)
		flags.page = weft_log_page_numbered((uint8_t)flags.lid);
	if (status == EXIT_OK)
		status = check_log_options(&flags);
	return status == EXIT_OK ? run_log(&flags) : status;
}
