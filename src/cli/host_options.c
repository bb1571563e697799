/* host_options.c - the options of every command that connects to a target: connect, find the
 * namespace, report a lost connection. */
#include "cli/host_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/units.h"

#define LOSS_MS     30000
#define NSIDS_SHOWN 16

void weft_host_options_init(struct weft_options *options)
{
	weft_options_init(options);
	options->loss_ms = LOSS_MS;
}

int weft_host_take_timeout(const char *command, const struct weft_cli_option *option,
			   const char *value, void *to)
{
	uint32_t *ms = to;

	if (!weft_ms_parse(value, ms) && *ms)
		return 1;
	weft_cli_usage_error(command, "--timeout: expected a time such as 500ms or 5s, got \"%s\"",
			     value);
	return -1;
}

int weft_host_take_nsid(const char *command, const struct weft_cli_option *option,
			const char *value, void *to)
{
	char *end;
	unsigned long long number = strtoull(value, &end, 0);

	if (*value >= '0' && *value <= '9' && !*end && number && number < UINT32_MAX) {
		*(uint32_t *)to = (uint32_t)number;
		return 1;
	}
	weft_cli_usage_error(command, "--ns: expected a namespace id from 1 on, got \"%s\"", value);
	return -1;
}

int weft_host_one_uri(int argc, char **argv, const char *example)
{
	if (optind == argc - 1)
		return EXIT_OK;
	return weft_cli_usage_error(argv[0], "expected one URI, as in \"%s %s\"", argv[0], example);
}

/* --- connecting ------------------------------------------------------------------------------- */

/* The URI is in order when this is called: EINVAL is the target's word, about a name in it. */
int weft_host_fail_connect(const char *uri, int rc, const struct weft_err *why,
			   struct weft_err *err)
{
	if (rc == -EINVAL && strstr(why->text, "no subsystem"))
		return weft_fail(err, rc, "%s; \"weft discover %s\" shows them", why->text,
				 weft_uri_service(uri).uri);
	if (rc == -ECONNREFUSED)
		return weft_fail(err, rc,
				 "%s; is \"weft serve\" running there, and is this where it "
				 "listens? The port is 4420 unless --listen says otherwise",
				 why->text);
	if (rc == -ECONNRESET && strstr(why->text, "ICResp"))
		return weft_fail(err, rc, "%s; is NVMe/TCP spoken at this port?", why->text);
	return weft_fail(err, rc, "%s", *why->text ? why->text : strerror(-rc));
}

int weft_host_connect(const char *command, const char *uri, const struct weft_options *options,
		      struct weft_ctrl **ctrl, struct weft_err *err)
{
	struct weft_options limited = *options;
	struct weft_path_wait waiting;
	struct weft_err why = { "" };
	int rc;

	weft_host_apply_limits(uri, &limited);
	weft_host_path_wait(&waiting, command, uri, options, NULL, NULL);
	rc = weft_connect(uri, &limited, ctrl, &why);
	weft_path_wait_end(&waiting);
	return rc < 0 ? weft_host_fail_connect(uri, rc, &why, err) : 0;
}

int weft_host_no_ns(const char *uri, uint32_t nsid, struct weft_err *err)
{
	struct weft_uri_buf place = weft_uri_subsystem(uri);

	return weft_fail(err, -ENODEV, "%s has no namespace %" PRIu32 "; \"weft ls %s\" shows them",
			 place.uri, nsid, place.uri);
}

int weft_host_ns_open(struct weft_ctrl *ctrl, const char *uri, uint32_t nsid, struct weft_ns **ns,
		      struct weft_err *err)
{
	struct weft_err why = { "" }, none = { "" };
	int rc = weft_ns_open(ctrl, nsid, ns, &why);
	char lost[400];

	if (rc == -ENODEV) {
		weft_host_lost_paths(ctrl, lost, sizeof(lost));
		weft_host_no_ns(uri, nsid, &none);
		return weft_fail(err, rc, "%s%s", none.text, lost);
	}
	return rc < 0 ? weft_fail(err, rc, "%s: %s", uri, why.text) : 0;
}

void weft_host_lost_paths(struct weft_ctrl *ctrl, char *text, size_t size)
{
	struct weft_path_wait_paths all = { 0 }, lost = { 0 };

	*text = '\0';
	all.count = weft_ctrl_paths(ctrl, all.paths, WEFT_PATHS_MAX);
	for (unsigned i = 0; i < all.count; i++)
		if (all.paths[i].state != WEFT_LIVE)
			lost.paths[lost.count++] = all.paths[i];
	if (!lost.count || all.count == 1)
		return;
	snprintf(text, size, "; %u of its %u paths %s not live: ", lost.count, all.count,
		 lost.count == 1 ? "is" : "are");
	weft_path_wait_why(&lost, text + strlen(text), size - strlen(text));
}

/* --- which namespace -------------------------------------------------------------------------- */

/* "1, 2, 5 …" */
static void list_text(const uint32_t *nsids, int count, char *text, size_t size)
{
	size_t at = 0;

	for (int i = 0; i < count && i < NSIDS_SHOWN && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%" PRIu32, i ? ", " : "", nsids[i]);
	if (count > NSIDS_SHOWN && at < size)
		snprintf(text + at, size - at, " …");
}

static int only_nsid(struct weft_ctrl *ctrl, const char *uri, uint32_t *nsid, struct weft_err *err)
{
	uint32_t nsids[NSIDS_SHOWN];
	int count = weft_ns_list(ctrl, nsids, NSIDS_SHOWN, err);
	char text[256];

	if (count < 0)
		return count;
	if (!count)
		return weft_fail(err, -ENOENT, "%s has no namespace", uri);
	if (count > 1) {
		list_text(nsids, count, text, sizeof(text));
		return weft_fail(err, -EINVAL, "which namespace? %s has %s: add %cnsid=N", uri,
				 text, strchr(uri, '?') ? '&' : '?');
	}
	*nsid = nsids[0];
	return 0;
}

int weft_host_nsid(struct weft_ctrl *ctrl, const char *uri, uint32_t wanted, uint32_t *nsid,
		   struct weft_err *err)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(ctrl, &info);
	if (info.discovery)
		return weft_fail(err, -EINVAL,
				 "%s is a discovery service and has no namespaces; \"weft discover "
				 "%s\" lists the subsystems to put behind it",
				 uri, weft_uri_service(uri).uri);
	*nsid = wanted ? wanted : info.nsid;
	return *nsid ? 0 : only_nsid(ctrl, uri, nsid, err);
}

/* --- the end --------------------------------------------------------------------------------- */

void weft_host_disconnect(struct weft_path_wait *waiting, struct weft_ns *ns,
			  struct weft_ctrl *ctrl)
{
	struct weft_path_wait closing = {
		.command = waiting->command,
		.uri = waiting->uri,
		.awaited = "the controller to shut down:",
		.connect_ms = waiting->connect_ms,
	};

	weft_path_wait_end(waiting);
	if (ns)
		weft_ns_close(ns);
	weft_path_wait_begin(&closing);
	weft_disconnect(ctrl);
	weft_path_wait_end(&closing);
}

/* --- lost connections ------------------------------------------------------------------------- */

/* The event's text without the name of the state, which is for logs. */
static const char *event_cause(const struct weft_event *event)
{
	const char *state = weft_state_text(event->state);
	size_t len = strlen(state);

	if (strncmp(event->text, state, len) || strncmp(event->text + len, ": ", 2))
		return event->text;
	return event->text + len + 2;
}

void weft_host_print_state(const char *command, const char *uri, const struct weft_event *event,
			   bool *lost)
{
	bool live = event->state == WEFT_LIVE;

	if (live && *lost)
		fprintf(stderr, "%s: connected again to %s\n", command, uri);
	/* What follows that it is dead is an error, which says so. */
	if (!live && !*lost && event->state != WEFT_CONNECTING && event->state != WEFT_DEAD)
		fprintf(stderr, "%s: connection lost to %s: %s; reconnecting\n", command, uri,
			event_cause(event));
	*lost = !live;
}

void weft_host_print_nothing(const char *sentence, const char *uri,
			     const struct weft_options *options)
{
	char nqn[224];

	weft_host_nqn(uri, options, nqn);
	printf("%s; this host is %s\n", sentence, nqn);
}

void weft_host_print_unfollowed(const char *command, const struct weft_discovery *log)
{
	if (log->unreachable)
		fprintf(stderr, "%s: warning: %u referral%s could not be followed: %s\n", command,
			log->unreachable, weft_plural(log->unreachable), log->why.text);
	if (log->skipped)
		fprintf(stderr, "%s: warning: %u referral%s not followed: %s\n", command,
			log->skipped, log->skipped == 1 ? " was" : "s were", log->skipped_why.text);
}

/* --- a namespace to work on ------------------------------------------------------------------- */

static int open_ns(struct weft_remote *remote, const char *uri, uint32_t nsid, struct weft_err *err)
{
	int rc = weft_host_nsid(remote->ctrl, uri, nsid, &nsid, err);

	if (rc == 0)
		rc = weft_host_ns_open(remote->ctrl, uri, nsid, &remote->ns, err);
	if (rc == 0)
		weft_ns_info(remote->ns, &remote->ns_info);
	return rc;
}

int weft_remote_connect(struct weft_remote *remote, const char *command, const char *uri,
			const struct weft_options *options, struct weft_err *err)
{
	int rc;

	*remote = (struct weft_remote){ NULL };
	rc = weft_host_connect(command, uri, options, &remote->ctrl, err);
	if (rc < 0)
		return rc;
	weft_ctrl_info(remote->ctrl, &remote->info);
	weft_host_path_wait(&remote->waiting, command, uri, options, remote->ctrl, NULL);
	weft_path_wait_asked(&remote->waiting, NULL); /* all that follows, up to its end */
	return 0;
}

int weft_remote_queue_open(struct weft_remote *remote, struct weft_queue **queue,
			   struct weft_err *err)
{
	int rc;

	weft_path_wait_asked(&remote->waiting, "Connect of an I/O queue");
	rc = weft_queue_open(remote->ctrl, queue, err);
	weft_path_wait_answered(&remote->waiting);
	return rc;
}

const char *weft_remote_op_text(enum weft_op_code op)
{
	static const char *const texts[] = {
		[WEFT_READ] = "Read",       [WEFT_WRITE] = "Write",
		[WEFT_FLUSH] = "Flush",     [WEFT_COMPARE] = "Compare",
		[WEFT_TRIM] = "Deallocate", [WEFT_ZERO] = "Write Zeroes",
		[WEFT_RAW] = "a command",
	};

	return (size_t)op < sizeof(texts) / sizeof(texts[0]) && texts[op] ? texts[op] : "I/O";
}

int weft_remote_run(struct weft_remote *remote, struct weft_queue *queue, struct weft_cmd *cmd,
		    struct weft_err *err)
{
	int rc;

	weft_path_wait_asked(&remote->waiting, weft_remote_op_text(cmd->op));
	rc = weft_run(queue, cmd, err);
	weft_path_wait_answered(&remote->waiting);
	return rc;
}

void weft_remote_hold_ns(struct weft_remote *remote, uint32_t nsid)
{
	bool several = remote->info.discovering || weft_ctrl_paths(remote->ctrl, NULL, 0) > 1;

	if (several && nsid && nsid < UINT32_MAX && !remote->info.discovery)
		weft_ns_open(remote->ctrl, nsid, &remote->ns, NULL);
}

int weft_remote_open(struct weft_remote *remote, const char *command, const char *uri,
		     uint32_t nsid, const struct weft_options *options, struct weft_err *err)
{
	int rc = weft_remote_connect(remote, command, uri, options, err);

	if (rc < 0)
		return rc;
	rc = open_ns(remote, uri, nsid, err);
	weft_path_wait_end(&remote->waiting);
	if (rc == 0)
		weft_host_path_wait(&remote->waiting, command, uri, options, remote->ctrl,
				    remote->ns);
	return rc;
}

bool weft_remote_cache_may_be_lost(const struct weft_remote *remote,
				   const struct weft_ctrl_info *since)
{
	struct weft_ctrl_info now;

	weft_ctrl_info(remote->ctrl, &now);
	return (now.volatile_cache || since->volatile_cache) && now.losses != since->losses;
}

void weft_remote_close(struct weft_remote *remote)
{
	if (remote->ctrl)
		weft_host_disconnect(&remote->waiting, remote->ns, remote->ctrl);
	*remote = (struct weft_remote){ NULL };
}
