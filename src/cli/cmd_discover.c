/* cmd_discover.c - weft discover: the log of a discovery service, and of those that it refers to.
 *
 *   once:    connect ─▶ log ─▶ referrals ─▶ print
 *   --watch: connect ─▶ log ─▶ print ─▶ wait for an event ─▶ log … */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/print.h"

static const char usage[] =
	"usage: weft discover [OPTION]... URI\n"
	"\n"
	"The discovery log: which subsystems are exported, and where. Referrals to other\n"
	"discovery services are followed. URI is that of a discovery service:\n"
	"nvme+tcp://HOST[:PORT] or nvme+rdma://HOST[:PORT]\n"
	"\n"
	"      --no-referrals  do not follow referrals\n"
	"      --watch         stay connected; print the log again whenever it changes,\n"
	"                      until Ctrl-C\n"
	"      --json          as JSON; with --watch, one line for each log\n" WEFT_HOST_USAGE
	"  -h, --help          this text\n" WEFT_URI_USAGE "\n"
	"  weft discover nvme+tcp://127.0.0.1:4420\n";

struct flags {
	const char *command, *uri;
	struct weft_options connect;
	bool no_referrals, watch, json;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("no-referrals", 0, struct flags, no_referrals),
	WEFT_CLI_FLAG("watch", 0, struct flags, watch),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

/* --- printing --------------------------------------------------------------------------------- */

static const char *type_text(uint8_t subtype)
{
	static const char *const types[] = { "?", "referral", "nvm", "discovery" };

	return types[subtype < 4 ? subtype : 0];
}

static json_t *discovered_json(const struct weft_discovered *e)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:s}", "type",
			 type_text(e->subtype), "subnqn", e->subnqn, "transport", e->transport,
			 "address", e->address, "service", e->service, "uri", e->uri, "portid",
			 e->portid, "cntlid", e->cntlid, "secure", e->secure, "from", e->from);
}

static void print_discovery_json(const struct weft_discovery *log, bool compact)
{
	json_auto_t *all = json_pack("{s:I, s:[], s:i, s:s, s:i, s:s}", "generation",
				     (json_int_t)log->generation, "entries", "unreachable",
				     log->unreachable, "why", log->why.text, "skipped",
				     log->skipped, "skipped_why", log->skipped_why.text);

	for (unsigned i = 0; i < log->count; i++)
		json_array_append_new(json_object_get(all, "entries"),
				      discovered_json(&log->entries[i]));
	weft_print_json(all, compact);
}

/* 127.0.0.1:4420, [::1]:4420; what is not TCP has addresses of its own kinds. */
static void address_text(const struct weft_discovered *e, char *text, size_t size)
{
	snprintf(text, size, strchr(e->address, ':') && *e->service ? "[%s]%s%s" : "%s%s%s",
		 e->address, *e->service ? ":" : "", e->service);
}

static int address_width(const struct weft_discovery *log)
{
	char text[300];
	int width = 7;

	for (unsigned i = 0; i < log->count; i++) {
		address_text(&log->entries[i], text, sizeof(text));
		width = (int)strlen(text) > width ? (int)strlen(text) : width;
	}
	return width;
}

static void print_table(const struct weft_discovery *log)
{
	int width = address_width(log);
	char address[300];

	printf("%-9s  %-*s  %6s  %-9s  %s\n", "TRANSPORT", width, "ADDRESS", "PORTID", "TYPE",
	       "SUBSYSTEM");
	for (unsigned i = 0; i < log->count; i++) {
		const struct weft_discovered *e = &log->entries[i];

		address_text(e, address, sizeof(address));
		printf("%-9s  %-*s  %6u  %-9s  %s%s\n", e->transport, width, address, e->portid,
		       type_text(e->subtype), e->subnqn, e->secure ? "  (TLS)" : "");
	}
}

static void print_log(const struct flags *flags, const struct weft_discovery *log)
{
	if (flags->json)
		print_discovery_json(log, flags->watch);
	else if (!log->count)
		weft_host_print_nothing("the log is empty: nothing is exported to this host",
					flags->uri, &flags->connect);
	else
		print_table(log);
	weft_cli_flush();
	weft_host_print_unfollowed(flags->command, log);
}

/* --- asking ----------------------------------------------------------------------------------- */

static int read_and_print(const struct flags *flags, struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct weft_discovery log = { 0 };
	int rc = weft_discovery_read(ctrl, &log, err);

	if (rc < 0)
		return rc;
	print_log(flags, &log);
	weft_discovery_free(&log);
	return 0;
}

/* If the connection is lost meanwhile, the log is read again after the reconnect. */
static int reprint_log(const struct flags *flags, struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc;

	if (!flags->json)
		printf("\n");
	rc = read_and_print(flags, ctrl, &why);
	if (rc < 0 && weft_ctrl_state(ctrl, NULL) == WEFT_LIVE)
		return weft_fail(err, rc, "%s", why.text);
	return 0;
}

static int on_event(const struct flags *flags, struct weft_ctrl *ctrl,
		    const struct weft_event *event, bool *lost, struct weft_err *err)
{
	bool was_lost = *lost;

	switch (event->kind) {
	case WEFT_EVENT_STATE:
		weft_host_print_state(flags->command, flags->uri, event, lost);
		if (event->state == WEFT_DEAD)
			return weft_fail(err, -EINVAL, "%s", event->text);
		/* Changes during the loss had no event. */
		return event->state == WEFT_LIVE && was_lost ? reprint_log(flags, ctrl, err) : 0;
	case WEFT_EVENT_DISCOVERY:
	case WEFT_EVENT_OVERFLOW:
		return reprint_log(flags, ctrl, err);
	default:
		return 0;
	}
}

static int watch_log(const struct flags *flags, struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct pollfd pfd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };
	struct weft_event event;
	bool lost = false;
	int rc = 0;

	/* Ends when nothing can be printed any more; main() says why. */
	while (rc == 0 && !ferror(stdout)) {
		poll(&pfd, 1, -1);
		while (rc == 0 && weft_ctrl_next_event(ctrl, &event))
			rc = on_event(flags, ctrl, &event, &lost, err);
	}
	return rc;
}

static int discover_one(const struct flags *flags, struct weft_err *err)
{
	struct weft_path_wait waiting;
	struct weft_ctrl *ctrl;
	int rc = weft_host_connect(flags->command, flags->uri, &flags->connect, &ctrl, err);

	if (rc < 0)
		return rc;
	weft_host_path_wait(&waiting, flags->command, flags->uri, &flags->connect, ctrl, NULL);
	weft_path_wait_asked(&waiting, NULL);
	rc = read_and_print(flags, ctrl, err);
	weft_path_wait_answered(&waiting);
	if (rc == 0 && flags->watch)
		rc = watch_log(flags, ctrl, err);
	weft_host_disconnect(&waiting, NULL, ctrl);
	return rc;
}

static int discover_all(const struct flags *flags, struct weft_err *err)
{
	struct weft_discovery log = { 0 };
	struct weft_path_wait waiting;
	struct weft_err why = { "" };
	int rc;

	weft_host_path_wait(&waiting, flags->command, flags->uri, &flags->connect, NULL, NULL);
	rc = weft_discover(flags->uri, &flags->connect, &log, &why);
	weft_path_wait_end(&waiting);
	if (rc < 0)
		return weft_host_fail_connect(flags->uri, rc, &why, err);
	print_log(flags, &log);
	weft_discovery_free(&log);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

int weft_cmd_discover(int argc, char **argv)
{
	struct flags flags = { .command = argv[0] };
	struct weft_err err = { "" };
	int status, rc;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420") != EXIT_OK)
		return EXIT_USAGE;
	flags.uri = argv[optind];
	if (weft_host_check(argv[0], flags.uri, &flags.connect, 0, NULL) != EXIT_OK)
		return EXIT_USAGE;
	rc = flags.watch || flags.no_referrals ? discover_one(&flags, &err) :
						 discover_all(&flags, &err);
	return rc < 0 ? weft_cli_failed(argv[0], err.text) : EXIT_OK;
}
