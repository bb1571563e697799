/* cmd_raw.c - weft raw: passthrough, any command with its dwords and data, and its completion. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hexdump.h"
#include "cli/host_options.h"
#include "cli/input.h"
#include "cli/passthru.h"
#include "cli/print.h"

static const char usage[] =
	"usage: weft raw admin|io --opcode N [OPTION]... URI\n"
	"\n"
	"Sends one command, admin or I/O, with the options of \"nvme admin-passthru\" and\n"
	"\"nvme io-passthru\". Nothing is checked: it is what you say it is. Shows dword 0\n"
	"of the completion and the data; ends with 1, and the status in words, if the\n"
	"controller refuses it.\n"
	"\n"
	"      --opcode N        which command; its lowest two bits say where data goes\n"
	"  -n, --namespace-id N  the namespace, any number (nsid= of the URI, or 0)\n"
	"      --ns N            the namespace, as the other commands have it\n"
	"      --cdw2 N, --cdw3 N, --cdw10 N … --cdw15 N\n"
	"                        dwords of the command (0)\n"
	"  -l, --data-len N      bytes of data (of the input file)\n"
	"  -r, --read            the data comes from the controller\n"
	"  -w, --write           the data goes to the controller\n"
	"  -i, --input-file FILE the data that goes there (standard input)\n"
	"  -b, --raw-binary      the data that came, as it is, and nothing else\n"
	"  -s, --show-command    show the command before it is sent\n"
	"      --json            as JSON\n" WEFT_HOST_USAGE "  -h, --help          this text\n"
	"\n"
	"Numbers may be 0x....\n" WEFT_URI_USAGE "\n"
	"  weft raw admin --opcode 0x06 --cdw10 1 --data-len 4096 --read \\\n"
	"      nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default\n";

enum { DATA_MAX = 16 << 20 };

struct flags {
	const char *command, *uri, *input; /* input NULL: not given */
	struct weft_options connect;
	bool admin;
	uint64_t opcode, nsid, length;
	uint32_t ns;         /* of --ns; 0: not given */
	uint32_t dwords[16]; /* those that have options */
	bool has_opcode, has_nsid, has_length;
	bool read, write, binary, show, json;
};

/* What is sent, and what came. */
struct exchange {
	union nvme_sqe sqe;
	char *data;
	uint32_t length;
	uint64_t result;
	uint16_t status;
};

/* --- the command on the wire ------------------------------------------------------------------ */

static void build_sqe(const struct flags *flags, const struct weft_ctrl_info *info,
		      union nvme_sqe *sqe)
{
	uint32_t words[16] = { 0 };

	memcpy(words, flags->dwords, sizeof(words));
	words[0] = (uint32_t)flags->opcode;
	words[1] = flags->has_nsid ? (uint32_t)flags->nsid : info->nsid;
	for (unsigned i = 0; i < 16; i++)
		words[i] = htole32(words[i]);
	memcpy(sqe, words, sizeof(words));
}

/* Of Fabrics commands the type says it, which is where others have a namespace. */
static enum nvme_direction direction(const struct flags *flags)
{
	union nvme_sqe sqe = { .common = { .opcode = (uint8_t)flags->opcode,
					   .nsid = cpu_to_le32((uint32_t)flags->nsid) } };

	return nvme_cmd_direction(&sqe);
}

static int send_command(const struct flags *flags, struct weft_remote *remote, struct exchange *x,
			struct weft_err *err)
{
	struct weft_passthru it = { .sqe = &x->sqe, .buf = x->data, .length = x->length };
	struct weft_err why = { "" };
	int rc = flags->admin ? weft_passthru_admin(remote->ctrl, &it, &why) :
				weft_passthru_io(remote, &it, &why);

	x->result = it.result;
	x->status = rc > 0 ? (uint16_t)rc : 0;
	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", flags->uri, why.text);
	/* The user may not know how much data the command has. */
	if (rc == 0 && weft_passthru_check(&it, flags->admin, it.length, &why) < 0)
		fprintf(stderr, "%s: %s\n", flags->command, why.text);
	return 0;
}

/* --- data ------------------------------------------------------------------------------------- */

static int read_input(const struct flags *flags, struct exchange *x, struct weft_err *err)
{
	size_t got;
	int rc = weft_input_read(flags->input ? flags->input : "-", x->data,
				 flags->has_length ? flags->length : DATA_MAX, &got, err);

	if (rc < 0)
		return rc;
	if (flags->has_length && got < flags->length)
		return weft_fail(err, -EINVAL,
				 "--data-len %" PRIu64 ": the input has only %zu bytes",
				 flags->length, got);
	x->length = (uint32_t)got;
	return 0;
}

static int prepare_data(const struct flags *flags, struct exchange *x, struct weft_err *err)
{
	enum nvme_direction way = direction(flags);

	if (way == NVME_DIR_NONE || (!flags->has_length && !flags->input))
		return 0;
	x->data = calloc(1, flags->has_length ? flags->length + 1 : DATA_MAX);
	if (!x->data)
		return weft_fail(err, -ENOMEM, "no memory for the data");
	x->length = (uint32_t)flags->length;
	return way == NVME_DIR_TO_CTRL ? read_input(flags, x, err) : 0;
}

/* --- printing --------------------------------------------------------------------------------- */

static const char *opcode_name(const struct flags *flags)
{
	return weft_opcode_text(flags->admin, (uint8_t)flags->opcode);
}

static void show_command(const struct flags *flags, const struct exchange *x)
{
	static const char *const ways[] = { "none", "to the controller", "to the host",
					    "both ways" };
	const __le32 *words = (const __le32 *)&x->sqe;

	fprintf(stderr, "opcode        0x%02x (%s)\n", (unsigned)flags->opcode, opcode_name(flags));
	fprintf(stderr, "namespace-id  0x%08" PRIx32 "\n", le32_to_cpu(words[1]));
	for (unsigned i = 2; i < 16; i++) {
		if (i < 4 || i >= 10)
			fprintf(stderr, "cdw%-10u 0x%08" PRIx32 "\n", i, le32_to_cpu(words[i]));
	}
	fprintf(stderr, "data-len      %" PRIu32 " (%s)\n", x->length, ways[direction(flags)]);
}

static bool has_answer(const struct flags *flags, const struct exchange *x)
{
	return !x->status && x->length && direction(flags) == NVME_DIR_TO_HOST;
}

static void print_raw_json(const struct flags *flags, const struct exchange *x)
{
	json_auto_t *json = json_pack("{s:i, s:s, s:i, s:s, s:b, s:I, s:I}", "opcode",
				      (int)flags->opcode, "name", opcode_name(flags), "status",
				      x->status & 0x7ff, "status_text", weft_status_text(x->status),
				      "dnr", !!(x->status & NVME_SC_DNR), "dword0",
				      (json_int_t)(uint32_t)x->result, "dword1",
				      (json_int_t)(x->result >> 32));

	if (has_answer(flags, x))
		json_object_set_new(json, "data", weft_json_hex(x->data, x->length));
	weft_print_json(json, false);
}

static void print_data(const struct exchange *x)
{
	struct weft_hexdump dump = { .out = stdout };

	weft_hexdump(&dump, x->data, x->length);
	weft_hexdump_end(&dump);
}

static void print_raw_text(const struct flags *flags, const struct exchange *x)
{
	printf("%s (0x%02x): success, dword 0 is 0x%08" PRIx32 "\n", opcode_name(flags),
	       (unsigned)flags->opcode, (uint32_t)x->result);
	if (has_answer(flags, x))
		print_data(x);
}

static int tell_refusal(const struct flags *flags, const struct exchange *x)
{
	fprintf(stderr,
		"%s: %s: %s (0x%02x): %s (NVMe status 0x%x%s), dword 0 is 0x%08" PRIx32 "\n",
		flags->command, weft_uri_subsystem(flags->uri).uri, opcode_name(flags),
		(unsigned)flags->opcode, weft_status_text(x->status), x->status & 0x7ff,
		x->status & NVME_SC_DNR ? ", do not retry" : "", (uint32_t)x->result);
	return EXIT_FAILED;
}

static int report_result(const struct flags *flags, const struct exchange *x)
{
	if (flags->json)
		print_raw_json(flags, x);
	else if (!x->status && !flags->binary)
		print_raw_text(flags, x);
	else if (has_answer(flags, x))
		fwrite(x->data, 1, x->length, stdout);
	return x->status ? tell_refusal(flags, x) : EXIT_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static int take_dword(const char *command, const struct weft_cli_option *option, const char *value,
		      void *to)
{
	uint64_t number;

	if (weft_cli_number(command, option->name, value, UINT32_MAX, &number) < 0)
		return -1;
	*(uint32_t *)to = (uint32_t)number;
	return 1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_NUMBER("opcode", 0, struct flags, opcode, UINT8_MAX,
			WEFT_CLI_GIVEN(struct flags, has_opcode)),
	WEFT_CLI_NUMBER("namespace-id", 'n', struct flags, nsid, UINT32_MAX,
			WEFT_CLI_GIVEN(struct flags, has_nsid)),
	WEFT_CLI_OWN("cdw2", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[2], uint32_t)),
	WEFT_CLI_OWN("cdw3", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[3], uint32_t)),
	WEFT_CLI_OWN("cdw10", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[10], uint32_t)),
	WEFT_CLI_OWN("cdw11", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[11], uint32_t)),
	WEFT_CLI_OWN("cdw12", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[12], uint32_t)),
	WEFT_CLI_OWN("cdw13", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[13], uint32_t)),
	WEFT_CLI_OWN("cdw14", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[14], uint32_t)),
	WEFT_CLI_OWN("cdw15", take_dword, .to = WEFT_CLI_AT(struct flags, dwords[15], uint32_t)),
	WEFT_CLI_NUMBER("data-len", 'l', struct flags, length, DATA_MAX,
			WEFT_CLI_GIVEN(struct flags, has_length)),
	WEFT_CLI_FLAG("read", 'r', struct flags, read),
	WEFT_CLI_FLAG("write", 'w', struct flags, write),
	WEFT_CLI_TEXT("input-file", 'i', struct flags, input),
	WEFT_CLI_FLAG("raw-binary", 'b', struct flags, binary),
	WEFT_CLI_FLAG("show-command", 's', struct flags, show),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_NS_OPTION(struct flags, ns),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

/* The opcode decides where data goes; an option that contradicts it is a mistake. */
static int check_direction(const struct flags *flags)
{
	enum nvme_direction way = direction(flags);
	bool moves = flags->length || flags->input;

	if (way == NVME_DIR_BOTH)
		return weft_cli_usage_error(flags->command,
					    "--opcode 0x%02x would move data both "
					    "ways, which is not supported",
					    (unsigned)flags->opcode);
	if (flags->read && way != NVME_DIR_TO_HOST)
		return weft_cli_usage_error(flags->command, "--read: opcode 0x%02x reads nothing",
					    (unsigned)flags->opcode);
	if ((flags->write || flags->input) && way != NVME_DIR_TO_CTRL)
		return weft_cli_usage_error(flags->command,
					    "--write and --input-file: opcode 0x%02x writes nothing",
					    (unsigned)flags->opcode);
	if (moves && way == NVME_DIR_NONE)
		return weft_cli_usage_error(flags->command,
					    "--data-len: opcode 0x%02x moves no data",
					    (unsigned)flags->opcode);
	return EXIT_OK;
}

static int check_raw_options(const struct flags *flags)
{
	int status;

	if (!flags->has_opcode)
		return weft_cli_usage_error(flags->command, "which command? --opcode says it");
	if (flags->binary && flags->json)
		return weft_cli_usage_error(flags->command, "--raw-binary does not go with --json");
	if (flags->ns && flags->has_nsid)
		return weft_cli_usage_error(flags->command,
					    "--ns and --namespace-id do not go together");
	status = check_direction(flags);
	if (status != EXIT_OK)
		return status;
	return weft_host_check(flags->command, flags->uri, &flags->connect, flags->ns, NULL);
}

static int take_words(struct flags *flags, char *const *words, int count)
{
	flags->admin = count && !strcmp(words[0], "admin");
	if (count != 2 || (!flags->admin && strcmp(words[0], "io") != 0))
		return weft_cli_usage_error(flags->command,
					    "expected admin or io, and URI, as in \"weft raw admin "
					    "--opcode 0x18 nvme+tcp://127.0.0.1:4420/NQN\"");
	flags->uri = words[1];
	return EXIT_OK;
}

/* --- the command ------------------------------------------------------------------------------ */

static int exchange(const struct flags *flags, struct exchange *x, struct weft_err *err)
{
	struct weft_remote remote = { .ctrl = NULL };
	int rc = prepare_data(flags, x, err);

	if (rc == 0)
		rc = weft_remote_connect(&remote, flags->command, flags->uri, &flags->connect, err);
	if (rc == 0) {
		build_sqe(flags, &remote.info, &x->sqe);
		if (flags->show)
			show_command(flags, x);
		weft_remote_hold_ns(&remote, le32_to_cpu(x->sqe.common.nsid));
		rc = send_command(flags, &remote, x, err);
	}
	weft_remote_close(&remote);
	return rc;
}

static int run_raw(const struct flags *flags)
{
	struct exchange x = { .data = NULL };
	struct weft_err err = { "" };
	int rc = exchange(flags, &x, &err);
	int status = rc < 0 ? weft_cli_failed(flags->command, err.text) : report_result(flags, &x);

	free(x.data);
	return status;
}

int weft_cmd_raw(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	status = take_words(&flags, argv + optind, argc - optind);
	if (status == EXIT_OK)
		status = check_raw_options(&flags);
	if (flags.ns) {
		flags.has_nsid = true;
		flags.nsid = flags.ns;
	}
	return status == EXIT_OK ? run_raw(&flags) : status;
}
