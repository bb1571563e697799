/* host_options.h - the options that every command shares which connects to a target, and what it
 * does with them: connect, find the namespace, tell of a lost connection. */
#ifndef WEFT_CLI_HOST_OPTIONS_H
#define WEFT_CLI_HOST_OPTIONS_H

#include <getopt.h>
#include <weft/host.h>

#include "base/err.h"

/* Far from the letters and numbers of a command's own options. */
enum {
	OPT_HOSTNQN = 0x1000,
	OPT_HOSTID,
	OPT_HDGST,
	OPT_DDGST,
	OPT_TIMEOUT,
};

#define WEFT_HOST_OPTIONS                                          \
	{ "hostnqn", required_argument, NULL, OPT_HOSTNQN },       \
		{ "hostid", required_argument, NULL, OPT_HOSTID }, \
		{ "hdgst", no_argument, NULL, OPT_HDGST },         \
		{ "ddgst", no_argument, NULL, OPT_DDGST },         \
	{                                                          \
		"timeout", required_argument, NULL, OPT_TIMEOUT    \
	}

#define WEFT_HOST_USAGE                                                                \
	"      --hostnqn NQN   the name to connect with (that of /etc/nvme/hostnqn)\n" \
	"      --hostid UUID   the host identifier (that of /etc/nvme/hostid)\n"       \
	"      --hdgst         checksums over headers\n"                               \
	"      --ddgst         checksums over data\n"                                  \
	"      --timeout TIME  for a connection to come about, such as 500ms or 5s (10s)\n"

/* The library's defaults, but for loss_timeout: people wait 30 s, not 10 minutes. */
void weft_host_options_init(struct weft_options *options);
/* 1: taken; 0: it is not one of these; -1: its value is wrong, and that is said. */
int weft_host_option(struct weft_options *options, const char *command, int option,
		     const char *value);

/* Which namespace is meant: @wanted, the URI's nsid=, or the only one there is. */
int weft_host_nsid(struct weft_ctrl *ctrl, const char *uri, uint32_t wanted, uint32_t *nsid,
		   struct weft_err *err);

/* Tells of a WEFT_EVENT_STATE on standard error: a loss once, and when it is over. @lost starts
 * as false. */
void weft_host_tell_state(const char *command, const char *uri, const struct weft_event *event,
			  bool *lost);

/* A namespace that a command works on. */
struct weft_remote {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_ctrl_info info;
	struct weft_ns_info ns_info;
};

int weft_remote_open(struct weft_remote *remote, const char *uri,
		     const struct weft_options *options, struct weft_err *err);
/* Also of what weft_remote_open() has left behind half way; no I/O is in flight. */
void weft_remote_close(struct weft_remote *remote);

#endif
