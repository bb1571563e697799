/* cmd_feature.c - weft feature: Get Features and Set Features. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/feature/feature.h"
#include "cli/hexdump.h"
#include "cli/host_options.h"
#include "cli/input.h"
#include "cli/passthru.h"
#include "cli/print.h"
#include "proto/nvme.h"

static const char usage[] =
	"usage: weft feature get [OPTION]... FEATURE URI\n"
	"       weft feature set [OPTION]... FEATURE VALUE URI\n"
	"\n"
	"Shows or sets a feature of the controller at URI, or of one of its namespaces.\n"
	"FEATURE is a number, or a name as nvme-cli has it: arbitration, power-mgmt,\n"
	"temp-thresh, err-recovery, volatile-wc, num-queues, write-atomic, async-event,\n"
	"timestamp, kato, hctm, host-behavior, iocs-profile, sw-progress, host-id,\n"
	"resv-mask, resv-persist, write-protect. VALUE is that of dword 11.\n"
	"\n"
	"      --select WHICH  get: current, default, saved, or supported: whether it can\n"
	"                      be changed (current)\n"
	"      --cdw11 N       get: of features that need one\n"
	"      --data-len N    get: of a feature by its number that has data\n"
	"  -b, --raw-binary    get: the data as it is, to standard output\n"
	"      --save          set: for after a reset, too\n"
	"  -i, --input FILE    set: the data of a feature that has some; - is a pipe\n"
	"      --json          as JSON\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"Most features are those of this one connection, and end with it.\n" WEFT_URI_USAGE "\n"
	"  weft feature get volatile-wc nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:default\n";

enum { DATA_MAX = 4096, SAVE = 1u << 31, SELECT_SHIFT = 8 };

static const char *const selects[] = { "current", "default", "saved", "supported", NULL };
enum { SELECT_CURRENT, SELECT_SUPPORTED = 3 };

struct flags {
	const char *command, *name, *uri, *input;
	const struct feature *feature; /* NULL: one that has no name here */
	struct weft_options connect;
	uint64_t fid, value, cdw11, data_len;
	uint32_t nsid;
	unsigned select;
	bool set, save, json, binary;
	bool has_select, has_cdw11, has_data_len; /* they were given */
};

/* What came of it. */
struct answer {
	uint32_t result;
	uint32_t length; /* of data */
	_Alignas(8) char data[DATA_MAX];
};

/* --- the command on the wire ------------------------------------------------------------------ */

static bool is_invalid_field(uint16_t status)
{
	return (status & 0x7ff) == NVME_SC_INVALID_FIELD;
}

static int describe_refusal(const struct flags *flags, struct weft_remote *remote, uint32_t nsid,
			    uint16_t status, struct weft_err *err)
{
	if (is_invalid_field(status) &&
	    weft_invalid_field_feature(remote->ctrl, flags->uri, (uint8_t)flags->fid, flags->name,
				       err))
		return -EOPNOTSUPP;
	if (is_invalid_field(status) && flags->set && flags->value & 1 &&
	    flags->fid == NVME_FEAT_FID_RESV_PERSIST &&
	    weft_invalid_field_ptpl(remote->ctrl, flags->uri, nsid, err))
		return -EOPNOTSUPP;
	return weft_fail(err, -EIO, "%s: feature \"%s\": %s (NVMe status 0x%x)",
			 weft_uri_subsystem(flags->uri).uri, flags->name, weft_status_text(status),
			 status & 0x7ff);
}

static void build_sqe(const struct flags *flags, uint32_t nsid, union nvme_sqe *sqe)
{
	uint32_t cdw10 = (uint32_t)flags->fid;

	cdw10 |= flags->set ? (flags->save ? SAVE : 0) : flags->select << SELECT_SHIFT;
	*sqe = (union nvme_sqe){
		.common = {
			.opcode = flags->set ? nvme_admin_set_features : nvme_admin_get_features,
			.nsid = cpu_to_le32(nsid),
			.cdw10 = cpu_to_le32(cdw10),
			.cdw11 = cpu_to_le32((uint32_t)(flags->set ? flags->value : flags->cdw11)),
		},
	};
}

/* A time is data of 6 bytes. */
static void fill_value(const struct flags *flags, union nvme_sqe *sqe, struct answer *answer)
{
	__le64 value = cpu_to_le64(flags->value);

	sqe->common.cdw11 = 0;
	memcpy(answer->data, &value, 6);
	answer->length = 8;
}

static uint32_t get_length(const struct flags *flags)
{
	if (flags->select == SELECT_SUPPORTED)
		return 0;
	return flags->feature ? flags->feature->data_len : (uint32_t)flags->data_len;
}

static int find_ns(const struct flags *flags, struct weft_remote *remote, uint32_t *nsid,
		   struct weft_err *err)
{
	*nsid = flags->nsid;
	if (!flags->feature || !flags->feature->per_namespace || *nsid)
		return 0;
	return weft_host_nsid(remote->ctrl, flags->uri, 0, nsid, err);
}

static int exchange_feature(const struct flags *flags, struct weft_remote *remote,
			    struct answer *answer, struct weft_err *err)
{
	union nvme_sqe sqe;
	struct weft_passthru it = { .sqe = &sqe, .buf = answer->data };
	uint32_t nsid;
	int rc = find_ns(flags, remote, &nsid, err);

	if (rc < 0)
		return rc;
	build_sqe(flags, nsid, &sqe);
	weft_remote_hold_ns(remote, nsid);
	if (!flags->set)
		answer->length = get_length(flags);
	else if (flags->feature && flags->feature->by_value)
		fill_value(flags, &sqe, answer);
	it.length = answer->length;
	rc = weft_passthru_admin(remote->ctrl, &it, err);
	answer->result = (uint32_t)it.result;
	if (rc > 0)
		return describe_refusal(flags, remote, nsid, (uint16_t)rc, err);
	return rc < 0 ? rc : weft_passthru_check(&it, true, it.length, err);
}

/* --- printing --------------------------------------------------------------------------------- */

static const struct feature_part supported_parts[] = {
	{ "saveable", 0, 1, "can be saved" },
	{ "per_namespace", 1, 1, "each namespace has its own" },
	{ "changeable", 2, 1, "can be changed" },
	{},
};

static const struct feature support = { .parts = supported_parts };
static const struct feature unknown = { .title = "Unknown" };

/* What the dword is to be taken apart by. */
static const struct feature *shown_as(const struct flags *flags)
{
	if (!flags->set && flags->select == SELECT_SUPPORTED)
		return &support;
	return flags->feature ? flags->feature : &unknown;
}

/* Set Features answers with something in dword 0 where that is not what was asked for. */
static uint32_t shown_value(const struct flags *flags, const struct answer *answer)
{
	bool answered = !flags->set || flags->fid == NVME_FEAT_FID_NUM_QUEUES;

	return answered ? answer->result : (uint32_t)flags->value;
}

static const char *title_of(const struct flags *flags)
{
	return flags->feature ? flags->feature->title : unknown.title;
}

static uint64_t timestamp_of(const struct answer *answer)
{
	__le64 value = 0;

	memcpy(&value, answer->data, 6);
	return le64_to_cpu(value);
}

static void print_feature_json(const struct flags *flags, const struct answer *answer)
{
	uint32_t value = shown_value(flags, answer);
	json_auto_t *json = json_pack("{s:I, s:s, s:I, s:o}", "fid", (json_int_t)flags->fid, "name",
				      title_of(flags), "value", (json_int_t)value, "fields",
				      weft_feature_json(shown_as(flags), value));

	if (flags->set)
		json_object_set_new(json, "saved", json_boolean(flags->save));
	else
		json_object_set_new(json, "select", json_string(selects[flags->select]));
	if (answer->length)
		json_object_set_new(json, "data", weft_json_hex(answer->data, answer->length));
	if (flags->fid == NVME_FEAT_FID_TIMESTAMP && answer->length == 8)
		json_object_set_new(json, "timestamp",
				    json_integer((json_int_t)timestamp_of(answer)));
	weft_print_json(json, false);
}

static void print_data(const struct flags *flags, const struct answer *answer)
{
	struct weft_hexdump dump = { .out = stdout };

	if (flags->fid == NVME_FEAT_FID_TIMESTAMP && answer->length == 8)
		printf("  %" PRIu64 " ms\n", timestamp_of(answer));
	weft_hexdump(&dump, answer->data, answer->length);
	weft_hexdump_end(&dump);
}

static void print_feature_text(const struct flags *flags, const struct answer *answer)
{
	uint32_t value = shown_value(flags, answer);
	const char *how = flags->set ? (flags->save ? "set and saved" : "set") :
				       selects[flags->select];

	printf("%s (0x%02x), %s: 0x%08" PRIx32 "\n", title_of(flags), (unsigned)flags->fid, how,
	       value);
	weft_feature_print(shown_as(flags), value);
	if (answer->length)
		print_data(flags, answer);
}

static void print_answer(const struct flags *flags, const struct answer *answer)
{
	if (flags->binary)
		fwrite(answer->data, 1, answer->length, stdout);
	else if (flags->json)
		print_feature_json(flags, answer);
	else
		print_feature_text(flags, answer);
}

/* --- options ---------------------------------------------------------------------------------- */

static int take_select(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	for (unsigned i = 0; selects[i]; i++) {
		if (!strcmp(value, selects[i])) {
			*(unsigned *)to = i;
			return 1;
		}
	}
	weft_cli_usage_error(command,
			     "--select: expected current, default, saved or supported, got \"%s\"",
			     value);
	return -1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_OWN("select", take_select, WEFT_CLI_GIVEN(struct flags, has_select),
		     .to = WEFT_CLI_AT(struct flags, select, unsigned)),
	WEFT_CLI_NUMBER("cdw11", 0, struct flags, cdw11, UINT32_MAX,
			WEFT_CLI_GIVEN(struct flags, has_cdw11)),
	WEFT_CLI_NUMBER("data-len", 0, struct flags, data_len, DATA_MAX,
			WEFT_CLI_GIVEN(struct flags, has_data_len)),
	WEFT_CLI_FLAG("raw-binary", 'b', struct flags, binary),
	WEFT_CLI_FLAG("save", 0, struct flags, save),
	WEFT_CLI_TEXT("input", 'i', struct flags, input),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_NS_OPTION(struct flags, nsid),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

static int take_name(struct flags *flags, const char *name)
{
	const char *names[64] = { NULL };

	flags->name = name;
	flags->feature = weft_feature_named(name);
	if (flags->feature) {
		flags->fid = flags->feature->fid;
		return EXIT_OK;
	}
	if (weft_cli_is_number(name, UINT8_MAX, &flags->fid)) {
		flags->feature = weft_feature_numbered((uint8_t)flags->fid);
		return EXIT_OK;
	}
	for (size_t i = 0; weft_features[i].name; i++)
		names[i] = weft_features[i].name;
	return weft_cli_unknown(flags->command, "feature", name, names);
}

/* A time is milliseconds, in 6 bytes; the others are a dword. */
static uint64_t data_length_max(const struct flags *flags)
{
	return flags->feature && flags->feature->by_value ? (UINT64_C(1) << 48) - 1 : UINT32_MAX;
}

static int take_words(struct flags *flags, char *const *words, int count)
{
	bool get = count && !strcmp(words[0], "get");

	flags->set = count && !strcmp(words[0], "set");
	if ((!get && !flags->set) || count != (get ? 3 : 4))
		return weft_cli_usage_error(flags->command, "expected \"get FEATURE URI\" or \"set "
							    "FEATURE VALUE URI\"");
	flags->uri = words[count - 1];
	if (take_name(flags, words[1]) != EXIT_OK)
		return EXIT_USAGE;
	if (flags->set && !weft_cli_is_number(words[2], data_length_max(flags), &flags->value))
		return weft_cli_usage_error(flags->command,
					    "VALUE: expected a number up to %" PRIu64
					    ", got \"%s\"",
					    data_length_max(flags), words[2]);
	return EXIT_OK;
}

static bool takes_input(const struct flags *flags)
{
	return !flags->feature || (flags->feature->data_len && !flags->feature->by_value);
}

static int check_set(const struct flags *flags)
{
	if (flags->has_select || flags->has_cdw11 || flags->has_data_len || flags->binary)
		return weft_cli_usage_error(flags->command, "--select, --cdw11, --data-len and "
							    "--raw-binary go with get");
	if (flags->input && !takes_input(flags))
		return weft_cli_usage_error(flags->command, "%s takes VALUE, and no --input",
					    flags->name);
	if (!flags->input && flags->feature && takes_input(flags))
		return weft_cli_usage_error(flags->command, "%s has data: --input says which",
					    flags->name);
	return EXIT_OK;
}

static int check_get(const struct flags *flags)
{
	if (flags->save || flags->input)
		return weft_cli_usage_error(flags->command, "--save and --input go with set");
	if (flags->has_data_len && flags->feature)
		return weft_cli_usage_error(flags->command, "--data-len goes with the number of a "
							    "feature that has no name here");
	if (flags->binary && flags->json)
		return weft_cli_usage_error(flags->command, "--raw-binary does not go with --json");
	return EXIT_OK;
}

static int check_feature_options(const struct flags *flags)
{
	int status = flags->set ? check_set(flags) : check_get(flags);

	if (status != EXIT_OK)
		return status;
	return weft_host_check(flags->command, flags->uri, &flags->connect, flags->nsid, NULL);
}

/* --- the command ------------------------------------------------------------------------------ */

static int read_input(const struct flags *flags, struct answer *answer, struct weft_err *err)
{
	size_t length;
	int rc;

	if (!flags->input)
		return 0;
	rc = weft_input_read(flags->input, answer->data, DATA_MAX, &length, err);
	answer->length = (uint32_t)length;
	return rc;
}

static int run_feature(const struct flags *flags)
{
	struct answer answer = { .result = 0 };
	struct weft_remote remote = { .ctrl = NULL };
	struct weft_err err = { "" };
	int rc = read_input(flags, &answer, &err);

	if (rc == 0)
		rc = weft_remote_connect(&remote, flags->command, flags->uri, &flags->connect,
					 &err);
	if (rc == 0)
		rc = exchange_feature(flags, &remote, &answer, &err);
	weft_remote_close(&remote);
	if (rc < 0)
		return weft_cli_failed(flags->command, err.text);
	print_answer(flags, &answer);
	return EXIT_OK;
}

int weft_cmd_feature(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	status = take_words(&flags, argv + optind, argc - optind);
	if (status != EXIT_OK)
		return status;
	if (flags.feature && !flags.has_cdw11)
		flags.cdw11 = flags.feature->cdw11;
	status = check_feature_options(&flags);
	return status == EXIT_OK ? run_feature(&flags) : status;
}
