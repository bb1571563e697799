/* cmd_resv.c - weft resv: reservations: registrants, the type, the holder, and the commands that
 * change them.
 *
 * A host is known by its identifier: a registration by one command is valid for the next command of
 * the same host, on any connection. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/passthru.h"
#include "cli/print.h"

static const char usage[] =
	"usage: weft resv ACTION [OPTION]... URI\n"
	"\n"
	"Reservations of a namespace: nvme+tcp://HOST:PORT/SUBNQN?nsid=N, where nsid may\n"
	"be left out if there is only one. ACTION is one of\n"
	"\n"
	"  report         registrants, the reservation and who holds it\n"
	"  register       --nrkey: this host with a key\n"
	"  unregister     --crkey: this host\n"
	"  replace        --crkey --nrkey: this host's key\n"
	"  acquire        --crkey --rtype: the reservation\n"
	"  preempt        --crkey --prkey --rtype: from who has that key\n"
	"  preempt-abort  likewise, and end its commands\n"
	"  release        --crkey --rtype: the reservation\n"
	"  clear          --crkey: the reservation and all registrants\n"
	"\n"
	"      --crkey KEY     this host's key, as it is\n"
	"      --nrkey KEY     this host's key, as it is to be\n"
	"      --prkey KEY     that of another host\n"
	"      --rtype TYPE    write-exclusive, exclusive-access, or one of these with\n"
	"                      -reg-only or -all-regs behind it; or its number\n"
	"      --iekey         the key that there is need not be known\n"
	"      --cptpl WHAT    set or clear: whether it persists through power loss\n"
	"      --json          as JSON\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"A key is a number of 64 bits, also 0x....\n" WEFT_URI_USAGE "\n"
	"  weft resv report nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default --ns 1\n";

/* Options of which each action needs some and takes some. */
enum { HAS_CRKEY, HAS_NRKEY, HAS_PRKEY, HAS_RTYPE, HAS_IEKEY, HAS_CPTPL, OPTION_NAMES };
enum { CRKEY = 1, NRKEY = 2, PRKEY = 4, RTYPE = 8, IEKEY = 16, CPTPL = 32 };

static const char *const option_names[] = { "crkey", "nrkey", "prkey", "rtype", "iekey", "cptpl" };

static const struct action {
	const char *name, *done; /* "acquire", "acquired" */
	uint8_t opcode;
	uint8_t code;          /* RREGA, RACQA or RRELA */
	unsigned needs, takes; /* options */
	unsigned second;       /* the key behind CRKEY: NRKEY, PRKEY or none */
} actions[] = {
	{ "report", NULL, nvme_cmd_resv_report, 0, 0, 0, 0 },
	{ "register", "registered", nvme_cmd_resv_register, 0, NRKEY, IEKEY | CPTPL, NRKEY },
	{ "unregister", "unregistered", nvme_cmd_resv_register, 1, CRKEY, IEKEY | CPTPL, NRKEY },
	{ "replace", "replaced the key", nvme_cmd_resv_register, 2, CRKEY | NRKEY, IEKEY | CPTPL,
	  NRKEY },
	{ "acquire", "acquired", nvme_cmd_resv_acquire, 0, CRKEY | RTYPE, IEKEY, PRKEY },
	{ "preempt", "preempted", nvme_cmd_resv_acquire, 1, CRKEY | PRKEY | RTYPE, IEKEY, PRKEY },
	{ "preempt-abort", "preempted", nvme_cmd_resv_acquire, 2, CRKEY | PRKEY | RTYPE, IEKEY,
	  PRKEY },
	{ "release", "released", nvme_cmd_resv_release, 0, CRKEY | RTYPE, IEKEY, 0 },
	{ "clear", "cleared", nvme_cmd_resv_release, 1, CRKEY, IEKEY, 0 },
};
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const char *const types[] = {
	"none",
	"write-exclusive",
	"exclusive-access",
	"write-exclusive-reg-only",
	"exclusive-access-reg-only",
	"write-exclusive-all-regs",
	"exclusive-access-all-regs",
};
#define TYPES (sizeof(types) / sizeof(types[0]))

struct flags {
	const char *command, *uri;
	const struct action *action;
	struct weft_options connect;
	uint64_t crkey, nrkey, prkey, rtype, cptpl;
	bool has[OPTION_NAMES]; /* it was given */
	unsigned given;         /* all that were, as above */
	uint32_t nsid;
	bool json;
};

static const char *type_text(unsigned type)
{
	return type < TYPES ? types[type] : "reserved";
}

/* --- commands --------------------------------------------------------------------------------- */

static int run_command(const struct flags *flags, struct weft_remote *remote, uint8_t opcode,
		       struct weft_passthru *it, union nvme_sqe *sqe, struct weft_err *err)
{
	int rc;

	sqe->common.opcode = opcode;
	sqe->common.nsid = cpu_to_le32(remote->ns_info.nsid);
	it->sqe = sqe;
	rc = weft_passthru_io(remote, it, err);
	if (rc <= 0)
		return rc;
	if ((rc & 0x7ff) == NVME_SC_INVALID_FIELD &&
	    flags->cptpl == NVME_RESERVATION_CPTPL_PERSIST &&
	    weft_invalid_field_ptpl(remote->ctrl, flags->uri, remote->ns_info.nsid, err))
		return -EOPNOTSUPP;
	return weft_fail(err, -EIO, "%s: %s: %s (NVMe status 0x%x)", flags->uri,
			 weft_opcode_text(false, opcode), weft_status_text((uint16_t)rc),
			 rc & 0x7ff);
}

/* Register, Acquire and Release have their fields in the same places, as far as they have them. */
static int change_reservation(const struct flags *flags, struct weft_remote *remote,
			      struct weft_err *err)
{
	const struct action *action = flags->action;
	__le64 keys[2] = { cpu_to_le64(flags->crkey) };
	uint32_t cdw10 = action->code | (flags->given & IEKEY ? 1u << 3 : 0) |
			 (uint32_t)flags->rtype << 8 | (uint32_t)flags->cptpl << 30;
	union nvme_sqe sqe = { .common = { .cdw10 = cpu_to_le32(cdw10) } };
	struct weft_passthru it = { .buf = keys, .length = action->second ? 16 : 8 };
	int rc;

	if (action->second)
		keys[1] = cpu_to_le64(action->second == NRKEY ? flags->nrkey : flags->prkey);
	rc = run_command(flags, remote, action->opcode, &it, &sqe, err);
	return rc < 0 ? rc : weft_passthru_check(&it, false, it.length, err);
}

/* --- the report ------------------------------------------------------------------------------- */

enum { REPORT_FIRST = 4096 };

/* The report as read: the target may have more registrants than are in it. */
struct report {
	struct nvme_resv_status *status;
	uint32_t size;
};

static unsigned registrants_reported(const struct report *report)
{
	return report->status->regctl[0] | report->status->regctl[1] << 8;
}

static uint32_t reported_size(const struct report *report)
{
	return (uint32_t)(sizeof(*report->status) +
			  registrants_reported(report) * sizeof(struct nvme_registered_ctrl_ext));
}

static unsigned shown(const struct report *report)
{
	unsigned room = (report->size - sizeof(*report->status)) /
			sizeof(struct nvme_registered_ctrl_ext);

	return registrants_reported(report) < room ? registrants_reported(report) : room;
}

/* EDS: host identifiers have 128 bits on fabrics. Bytes behind the last registrant need not
 * come. */
static int read_report(const struct flags *flags, struct weft_remote *remote, struct report *report,
		       uint32_t size, struct weft_err *err)
{
	union nvme_sqe sqe = {
		.common = { .cdw10 = cpu_to_le32(size / 4 - 1), .cdw11 = cpu_to_le32(1) },
	};
	struct weft_passthru it = { .length = size };
	uint32_t needed;
	int rc;

	free(report->status);
	report->size = size;
	report->status = it.buf = calloc(1, size);
	if (!it.buf)
		return weft_fail(err, -ENOMEM, "no memory for the report");
	rc = run_command(flags, remote, nvme_cmd_resv_report, &it, &sqe, err);
	needed = reported_size(report) < size ? reported_size(report) : size;
	return rc < 0 ? rc : weft_passthru_check(&it, false, needed, err);
}

static uint32_t whole_size(const struct report *report, const struct weft_remote *remote)
{
	uint32_t size = reported_size(report), most = remote->info.transfer_max & ~63u;

	return size < most ? size : most;
}

/* Reads it a second time if there are more registrants than expected. */
static int ask_report(const struct flags *flags, struct weft_remote *remote, struct report *report,
		      struct weft_err *err)
{
	int rc = read_report(flags, remote, report, REPORT_FIRST, err);

	if (rc == 0 && whole_size(report, remote) > report->size)
		rc = read_report(flags, remote, report, whole_size(report, remote), err);
	return rc;
}

static bool is_holder(const struct nvme_registered_ctrl_ext *entry)
{
	return entry->rcsts & 1;
}

/* JSON's integers end at 2^63 here. */
static json_t *key_json(uint64_t key)
{
	char text[24];

	if (key <= INT64_MAX)
		return json_integer((json_int_t)key);
	snprintf(text, sizeof(text), "0x%" PRIx64, key);
	return json_string(text);
}

static json_t *registrant_json(const struct nvme_registered_ctrl_ext *entry)
{
	char hostid[37];

	weft_uuid_format(entry->hostid, hostid);
	return json_pack("{s:i, s:i, s:o, s:s}", "cntlid", le16_to_cpu(entry->cntlid), "rcsts",
			 entry->rcsts, "rkey", key_json(le64_to_cpu(entry->rkey)), "hostid",
			 hostid);
}

static void print_report_json(const struct report *report)
{
	const struct nvme_resv_status *status = report->status;
	json_t *list = json_array();
	json_auto_t *json = json_pack("{s:I, s:i, s:i, s:i, s:o}", "gen",
				      (json_int_t)le32_to_cpu(status->gen), "rtype", status->rtype,
				      "regctl", registrants_reported(report), "ptpls",
				      status->ptpls, "regctlext", list);

	for (unsigned i = 0; i < shown(report); i++)
		json_array_append_new(list, registrant_json(&status->regctl_eds[i]));
	weft_print_json(json, false);
}

static void print_report(const struct report *report)
{
	const struct nvme_resv_status *status = report->status;
	char hostid[37];

	printf("reservation  %s\n", type_text(status->rtype));
	printf("generation   %" PRIu32 "\n", le32_to_cpu(status->gen));
	printf("persists     %s\n", status->ptpls ? "through power loss" : "no");
	printf("registrants  %u\n", registrants_reported(report));
	for (unsigned i = 0; i < shown(report); i++) {
		const struct nvme_registered_ctrl_ext *entry = &status->regctl_eds[i];

		weft_uuid_format(entry->hostid, hostid);
		printf("  host %s  key 0x%016" PRIx64 "%s\n", hostid, le64_to_cpu(entry->rkey),
		       is_holder(entry) ? "  holder" : "");
	}
	if (shown(report) < registrants_reported(report))
		printf("  … %u more\n", registrants_reported(report) - shown(report));
}

/* --- whether there is something to release ---------------------------------------------------- */

/* Release succeeds for a registrant that holds nothing, and changes nothing then (NVMe base 2.0,
 * 8.19): the report from before shows which it was. */
struct hold {
	bool known; /* the report could be read */
	bool ours;
	unsigned rtype; /* if it is */
	char why[128];  /* why it is not ours */
};

static void find_own_hold(const struct flags *flags, const struct report *report, struct hold *hold)
{
	const struct nvme_resv_status *status = report->status;
	uint8_t hostid[16];
	char text[37];

	weft_host_id(flags->uri, &flags->connect, hostid);
	snprintf(hold->why, sizeof(hold->why), "no host holds a reservation");
	for (unsigned i = 0; i < shown(report); i++) {
		const struct nvme_registered_ctrl_ext *entry = &status->regctl_eds[i];

		if (!is_holder(entry))
			continue;
		hold->ours |= !memcmp(entry->hostid, hostid, sizeof(hostid));
		hold->rtype = status->rtype;
		weft_uuid_format(entry->hostid, text);
		snprintf(hold->why, sizeof(hold->why), "host %s holds the reservation (%s)", text,
			 type_text(status->rtype));
	}
}

static void read_hold(const struct flags *flags, struct weft_remote *remote, struct hold *hold)
{
	struct report report = { .status = NULL };
	struct weft_err ignored = { "" };

	*hold = (struct hold){ .known = !ask_report(flags, remote, &report, &ignored) };
	if (hold->known)
		find_own_hold(flags, &report, hold);
	free(report.status);
}

/* --- options ---------------------------------------------------------------------------------- */

static int take_type(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	uint64_t *rtype = to;

	if (weft_cli_is_number(value, TYPES - 1, rtype) && *rtype)
		return 1;
	for (unsigned i = 1; i < TYPES; i++) {
		if (!strcmp(value, types[i])) {
			*rtype = i;
			return 1;
		}
	}
	weft_cli_usage_error(command,
			     "--rtype: expected a type such as write-exclusive, or 1 to 6, got "
			     "\"%s\"",
			     value);
	return -1;
}

static int take_cptpl(const char *command, const struct weft_cli_option *option, const char *value,
		      void *to)
{
	uint64_t *cptpl = to;

	*cptpl = !strcmp(value, "clear") ? 2 : !strcmp(value, "set") ? 3 : 0;
	if (*cptpl)
		return 1;
	weft_cli_usage_error(command, "--cptpl: expected set or clear, got \"%s\"", value);
	return -1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_NUMBER("crkey", 0, struct flags, crkey, UINT64_MAX,
			WEFT_CLI_GIVEN(struct flags, has[HAS_CRKEY])),
	WEFT_CLI_NUMBER("nrkey", 0, struct flags, nrkey, UINT64_MAX,
			WEFT_CLI_GIVEN(struct flags, has[HAS_NRKEY])),
	WEFT_CLI_NUMBER("prkey", 0, struct flags, prkey, UINT64_MAX,
			WEFT_CLI_GIVEN(struct flags, has[HAS_PRKEY])),
	WEFT_CLI_OWN("rtype", take_type, .to = WEFT_CLI_AT(struct flags, rtype, uint64_t),
		     WEFT_CLI_GIVEN(struct flags, has[HAS_RTYPE])),
	WEFT_CLI_FLAG("iekey", 0, struct flags, has[HAS_IEKEY]),
	WEFT_CLI_OWN("cptpl", take_cptpl, .to = WEFT_CLI_AT(struct flags, cptpl, uint64_t),
		     WEFT_CLI_GIVEN(struct flags, has[HAS_CPTPL])),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_NS_OPTION(struct flags, nsid),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

static int take_action(struct flags *flags, const char *name)
{
	const char *names[ACTIONS + 1] = { NULL };

	for (size_t i = 0; i < ACTIONS; i++) {
		names[i] = actions[i].name;
		if (!strcmp(name, actions[i].name)) {
			flags->action = &actions[i];
			return EXIT_OK;
		}
	}
	return weft_cli_unknown(flags->command, "action", name, names);
}

/* A host that ignores its current key need not know it. */
static unsigned missing_options(const struct flags *flags)
{
	unsigned needs = flags->action->needs;

	if (flags->given & IEKEY)
		needs &= ~(unsigned)CRKEY;
	return needs & ~flags->given;
}

static int check_resv_options(struct flags *flags)
{
	const struct action *action = flags->action;
	unsigned lacks, extra;

	for (unsigned i = 0; i < OPTION_NAMES; i++)
		flags->given |= (unsigned)flags->has[i] << i;
	lacks = missing_options(flags);
	extra = flags->given & ~(action->needs | action->takes);
	for (unsigned i = 0; i < OPTION_NAMES; i++) {
		if (lacks >> i & 1)
			return weft_cli_usage_error(flags->command, "%s needs --%s", action->name,
						    option_names[i]);
		if (extra >> i & 1)
			return weft_cli_usage_error(flags->command, "%s takes no --%s",
						    action->name, option_names[i]);
	}
	return weft_host_check(flags->command, flags->uri, &flags->connect, flags->nsid, NULL);
}

/* --- the command ------------------------------------------------------------------------------ */

static int report(const struct flags *flags, struct weft_remote *remote, struct weft_err *err)
{
	struct report report = { .status = NULL };
	int rc = ask_report(flags, remote, &report, err);

	if (rc == 0 && flags->json)
		print_report_json(&report);
	else if (rc == 0)
		print_report(&report);
	free(report.status);
	return rc;
}

static bool is_release(const struct flags *flags)
{
	return !strcmp(flags->action->name, "release");
}

static void print_change(const struct flags *flags, uint32_t nsid, const struct hold *hold)
{
	bool nothing = hold->known && !hold->ours;
	json_auto_t *json = json_pack("{s:s, s:I}", "action", flags->action->name, "nsid",
				      (json_int_t)nsid);

	if (hold->known)
		json_object_set_new(json, "released", json_boolean(hold->ours));
	if (flags->json)
		weft_print_json(json, false);
	else if (nothing)
		printf("nothing to release: %s, namespace %" PRIu32 "\n", hold->why, nsid);
	else
		printf("%s, namespace %" PRIu32 "\n", flags->action->done, nsid);
}

/* A release that names another type is an invalid field, which says little. */
static int describe_failure(const struct flags *flags, const struct weft_remote *remote,
			    const struct hold *hold, int rc, const struct weft_err *why,
			    struct weft_err *err)
{
	if (!hold->known || !hold->ours || hold->rtype == flags->rtype)
		return weft_fail(err, rc, "%s", why->text);
	return weft_fail(err, rc,
			 "%s: this host holds the reservation of namespace %" PRIu32
			 " as %s, not as %s: release it with --rtype %s",
			 weft_uri_subsystem(flags->uri).uri, remote->ns_info.nsid,
			 type_text(hold->rtype), type_text((unsigned)flags->rtype),
			 type_text(hold->rtype));
}

static int run_action(const struct flags *flags, struct weft_remote *remote, struct weft_err *err)
{
	struct hold hold = { .known = false };
	struct weft_err why = { "" };
	int rc;

	if (!flags->action->done)
		return report(flags, remote, err);
	if (is_release(flags))
		read_hold(flags, remote, &hold);
	rc = change_reservation(flags, remote, &why);
	if (rc < 0)
		return describe_failure(flags, remote, &hold, rc, &why, err);
	print_change(flags, remote->ns_info.nsid, &hold);
	return 0;
}

static int run_resv(const struct flags *flags)
{
	struct weft_remote remote;
	struct weft_err err = { "" };
	int rc = weft_remote_open(&remote, flags->command, flags->uri, flags->nsid, &flags->connect,
				  &err);

	if (rc == 0)
		rc = run_action(flags, &remote, &err);
	weft_remote_close(&remote);
	return rc < 0 ? weft_cli_failed(flags->command, err.text) : EXIT_OK;
}

int weft_cmd_resv(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (argc - optind != 2)
		return weft_cli_usage_error(argv[0],
					    "expected ACTION and URI, as in \"weft resv report "
					    "nvme+tcp://127.0.0.1:4420/NQN\"");
	flags.uri = argv[optind + 1];
	status = take_action(&flags, argv[optind]);
	if (status == EXIT_OK)
		status = check_resv_options(&flags);
	return status == EXIT_OK ? run_resv(&flags) : status;
}
