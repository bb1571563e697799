/* cmd_id.c - weft id: Identify Controller and Identify Namespace, decoded, and the path to them. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hexdump.h"
#include "cli/host_options.h"
#include "cli/id/id.h"
#include "cli/print.h"

static const char usage[] =
	"usage: weft id [OPTION]... URI\n"
	"\n"
	"What a controller and a namespace say of themselves: Identify, decoded; how the\n"
	"controller reaches its namespaces, if it tells (ANA); and the path to it: over\n"
	"RDMA the adapter, its port and the MTU. The namespace is that of --ns, of nsid=\n"
	"in the URI, or the only one there is; where there are several, they are listed.\n"
	"\n"
	"      --hex           the pages as they are\n"
	"      --json          as JSON: the fields' numbers\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n" WEFT_URI_USAGE "\n"
	"  weft id nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default --ns 1\n";

struct flags {
	const char *command, *uri;
	struct weft_options connect;
	uint32_t nsid;
	bool hex, json;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("hex", 0, struct flags, hex),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_NS_OPTION(struct flags, nsid),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

#define PAGE NVME_IDENTIFY_DATA_SIZE

/* What was asked for. */
struct pages {
	char address[128];
	struct weft_path path;
	uint32_t nsid; /* 0: no namespace */
	bool has_descriptors;
	json_t *ana; /* NULL: it does not report ANA */
	_Alignas(8) char ctrl[PAGE];
	_Alignas(8) char ns[PAGE];
	_Alignas(8) char descriptors[PAGE];
	uint32_t nsids[64]; /* some of what there is */
	int count;
};

/* --- asking ----------------------------------------------------------------------------------- */

static int identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *page,
		    const char *what, struct weft_err *err)
{
	int rc = weft_identify(ctrl, cns, nsid, page, err);

	if (rc > 0)
		return weft_fail(err, -EINVAL, "%s: %s", what, weft_status_text((uint16_t)rc));
	return rc;
}

/* An inactive namespace reads as zeroes. */
static int read_ns_pages(struct weft_ctrl *ctrl, const struct flags *flags, struct pages *pages,
			 struct weft_err *err)
{
	struct weft_err ignored = { "" };
	char what[64];
	int rc;

	snprintf(what, sizeof(what), "Identify of namespace %" PRIu32, pages->nsid);
	rc = identify(ctrl, NVME_IDENTIFY_CNS_NS, pages->nsid, pages->ns, what, err);
	if (rc < 0)
		return rc;
	if (!((struct nvme_id_ns *)pages->ns)->nsze)
		return weft_host_no_ns(flags->uri, pages->nsid, err);
	/* Controllers before NVMe 1.3 do not have them. */
	pages->has_descriptors = !weft_identify(ctrl, NVME_IDENTIFY_CNS_NS_DESC_LIST, pages->nsid,
						pages->descriptors, &ignored);
	return 0;
}

static int read_ana_page(struct weft_ctrl *ctrl, struct pages *pages, struct weft_err *err)
{
	const struct nvme_id_ctrl *id = (const void *)pages->ctrl;

	if (!(id->cmic & NVME_CTRL_CMIC_MULTI_ANA_REPORTING))
		return 0;
	return weft_id_ana(ctrl, id, &pages->ana, err);
}

static int choose_ns(struct weft_ctrl *ctrl, const struct flags *flags, struct pages *pages,
		     struct weft_err *err)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(ctrl, &info);
	snprintf(pages->address, sizeof(pages->address), "%s", info.address);
	if (info.discovery && flags->nsid)
		return weft_host_nsid(ctrl, flags->uri, flags->nsid, &pages->nsid, err);
	if (info.discovery)
		return 0;
	pages->count = weft_ns_list(ctrl, pages->nsids, 64, err);
	if (pages->count < 0)
		return pages->count;
	pages->nsid = flags->nsid       ? flags->nsid :
		      info.nsid         ? info.nsid :
		      pages->count == 1 ? pages->nsids[0] :
					  0;
	return 0;
}

static int read_pages(const struct flags *flags, struct pages *pages, struct weft_err *err)
{
	struct weft_remote remote;
	int rc = weft_remote_connect(&remote, flags->command, flags->uri, &flags->connect, err);

	if (rc < 0)
		return rc;
	weft_ctrl_path(remote.ctrl, &pages->path);
	rc = identify(remote.ctrl, NVME_IDENTIFY_CNS_CTRL, 0, pages->ctrl,
		      "Identify of the controller", err);
	if (rc == 0)
		rc = read_ana_page(remote.ctrl, pages, err);
	if (rc == 0)
		rc = choose_ns(remote.ctrl, flags, pages, err);
	if (rc == 0)
		weft_remote_hold_ns(&remote, pages->nsid);
	if (rc == 0 && pages->nsid)
		rc = read_ns_pages(remote.ctrl, flags, pages, err);
	weft_remote_close(&remote);
	return rc;
}

/* --- printing --------------------------------------------------------------------------------- */

static json_t *nsids_json(const struct pages *pages)
{
	json_t *list = json_array();

	for (int i = 0; i < pages->count && i < 64; i++)
		json_array_append_new(list, json_integer(pages->nsids[i]));
	return list;
}

static void print_id_json(const struct pages *pages)
{
	json_auto_t *all = json_pack("{s:s, s:o, s:o, s:o}", "uri", pages->address, "path",
				     weft_id_path_json(&pages->path), "controller",
				     weft_id_json(weft_id_ctrl_fields, pages->ctrl), "namespaces",
				     nsids_json(pages));
	json_t *ns;

	if (pages->ana)
		json_object_set(all, "ana", pages->ana);
	if (pages->nsid) {
		ns = weft_id_json(weft_id_ns_fields, pages->ns);
		json_object_set_new(ns, "nsid", json_integer(pages->nsid));
		json_object_set_new(ns, "lbafs", weft_id_lbaf_json((const void *)pages->ns));
		if (pages->has_descriptors)
			json_object_set_new(ns, "descriptors",
					    weft_id_descriptors_json(pages->descriptors));
		json_object_set_new(all, "namespace", ns);
	}
	weft_print_json(all, false);
}

static void print_hex_page(const char *title, const void *page)
{
	struct weft_hexdump dump = { .out = stdout };

	printf("%s\n", title);
	weft_hexdump(&dump, page, PAGE);
	weft_hexdump_end(&dump);
}

static void print_hex(const struct pages *pages)
{
	print_hex_page("Identify Controller", pages->ctrl);
	if (pages->nsid)
		print_hex_page("\nIdentify Namespace", pages->ns);
	if (pages->nsid && pages->has_descriptors)
		print_hex_page("\nNamespace Identification Descriptor list", pages->descriptors);
}

static void print_others(const struct pages *pages)
{
	if (!pages->count)
		return;
	printf("\nnamespaces:");
	for (int i = 0; i < pages->count && i < 64; i++)
		printf(" %" PRIu32, pages->nsids[i]);
	printf("%s (--ns N shows one)\n", pages->count > 64 ? " …" : "");
}

static void print_id_text(const struct pages *pages)
{
	printf("path\n");
	weft_id_path_print(&pages->path);
	printf("\ncontroller at %s\n", pages->address);
	weft_id_print(weft_id_ctrl_fields, pages->ctrl);
	if (pages->ana) {
		printf("\nasymmetric namespace access\n");
		weft_id_ana_print(pages->ana);
	}
	if (!pages->nsid) {
		print_others(pages);
		return;
	}
	printf("\nnamespace %" PRIu32 "\n", pages->nsid);
	weft_id_print(weft_id_ns_fields, pages->ns);
	weft_id_lbaf_print((const void *)pages->ns);
	if (pages->has_descriptors) {
		json_auto_t *descriptors = weft_id_descriptors_json(pages->descriptors);

		printf("\nidentifiers\n");
		weft_id_descriptors_print(descriptors);
	}
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_id(const struct flags *flags)
{
	struct pages pages = { .nsid = 0 };
	struct weft_err err = { "" };

	if (read_pages(flags, &pages, &err) < 0) {
		json_decref(pages.ana);
		return weft_cli_failed(flags->command, err.text);
	}
	if (flags->hex)
		print_hex(&pages);
	else if (flags->json)
		print_id_json(&pages);
	else
		print_id_text(&pages);
	json_decref(pages.ana);
	return EXIT_OK;
}

int weft_cmd_id(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420/NQN") != EXIT_OK)
		return EXIT_USAGE;
	if (flags.hex && flags.json)
		return weft_cli_usage_error(argv[0], "--hex does not go with --json");
	flags.uri = argv[optind];
	status = weft_host_check(argv[0], flags.uri, &flags.connect, flags.nsid, NULL);
	return status == EXIT_OK ? run_id(&flags) : status;
}
