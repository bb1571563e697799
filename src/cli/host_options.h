/* host_options.h - the options of every command that connects to a target, and their use: connect,
 * find the namespace, report a lost connection. */
#ifndef WEFT_CLI_HOST_OPTIONS_H
#define WEFT_CLI_HOST_OPTIONS_H

#include <weft/host.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/path_wait.h"

/* Rows of a command's table: @member of @type is a struct weft_options. */
#define WEFT_HOST_OPTIONS(type, member)                          \
	WEFT_CLI_TEXT("hostnqn", 0, type, member.hostnqn),       \
		WEFT_CLI_TEXT("hostid", 0, type, member.hostid), \
		WEFT_CLI_FLAG("hdgst", 0, type, member.hdgst),   \
		WEFT_CLI_FLAG("ddgst", 0, type, member.ddgst),   \
		WEFT_CLI_OWN("timeout", weft_host_take_timeout,  \
			     .to = WEFT_CLI_AT(type, member.connect_ms, uint32_t))

#define WEFT_HOST_USAGE                                                                \
	"      --hostnqn NQN   the name to connect with (that of /etc/nvme/hostnqn)\n" \
	"      --hostid UUID   the host identifier (that of /etc/nvme/hostid)\n"       \
	"      --hdgst         checksums over headers\n"                               \
	"      --ddgst         checksums over data\n"                                  \
	"      --timeout TIME  for a connection to come about, such as 500ms or 5s (10s)\n"

/* Of the commands that work on one namespace; @member is a uint32_t. */
#define WEFT_NS_OPTION(type, member) \
	WEFT_CLI_OWN("ns", weft_host_take_nsid, .to = WEFT_CLI_AT(type, member, uint32_t))

#define WEFT_NS_USAGE "      --ns N          the namespace; instead of nsid=N in the URI\n"

/* The end of every help text: where the parameters of a URI are described. */
#define WEFT_URI_USAGE                                                                       \
	"\nA URI begins with nvme+tcp:// or nvme+rdma://. A lost connection is made again\n" \
	"for 30 s, and so long I/O waits for a path (?loss_timeout=TIME in it). Its other\n" \
	"words: \"Addresses\" in weft(1).\n"

/* The library's defaults, but for loss_timeout: people wait 30 s, not 10 minutes. */
void weft_host_options_init(struct weft_options *options);
weft_cli_take weft_host_take_timeout, weft_host_take_nsid;

/* Checks that one argument is left, at optind: EXIT_OK, or EXIT_USAGE after an error with @example
 * was printed. */
int weft_host_one_uri(int argc, char **argv, const char *example);
/* Checks @uri, @options and @nsid (of --ns; 0: not given) before a connection is made: EXIT_OK, or
 * EXIT_USAGE after the error was printed. @resolved (or NULL) gets the options with the URI's
 * parameters in them. */
int weft_host_check(const char *command, const char *uri, const struct weft_options *options,
		    uint32_t nsid, struct weft_options *resolved);
/* The host NQN that is used if none is given; true: it is this user's own. */
bool weft_host_name(char *nqn, size_t size);

/* The host identifier that @uri and @options connect with. */
void weft_host_id(const char *uri, const struct weft_options *options, uint8_t hostid[16]);
/* The host's name, likewise. */
void weft_host_nqn(const char *uri, const struct weft_options *options, char nqn[224]);

/* "SENTENCE; this host is NQN", where a target shows this host nothing. */
void weft_host_print_nothing(const char *sentence, const char *uri,
			     const struct weft_options *options);

/* Whether @text is meant as a URI, and not as the name of a file. */
bool weft_cli_is_uri(const char *text);

/* Other URIs made from one: without its words, and without the subsystem too. */
struct weft_uri_buf {
	char uri[512];
};

struct weft_uri_buf weft_uri_subsystem(const char *uri);
struct weft_uri_buf weft_uri_service(const char *uri);

/* Sets the time limits of @options from the URI's parameters; I/O waits for a path as long as for a
 * lost connection, unless fast_io_fail= is given. */
void weft_host_apply_limits(const char *uri, struct weft_options *options);

/* @why with the next step behind it; returns @rc, with which a connection to @uri failed. */
int weft_host_fail_connect(const char *uri, int rc, const struct weft_err *why,
			   struct weft_err *err);
/* weft_connect() within weft_host_apply_limits(), with advice if there is no such subsystem.
 * @command: prints a message while it waits; NULL: it does not. */
int weft_host_connect(const char *command, const char *uri, const struct weft_options *options,
		      struct weft_ctrl **ctrl, struct weft_err *err);
/* From now on a message is printed while @ctrl has no live path, or @ns, if that is not NULL, no
 * usable one. Call weft_path_wait_end() before either is closed. */
void weft_host_path_wait(struct weft_path_wait *waiting, const char *command, const char *uri,
			 const struct weft_options *options, struct weft_ctrl *ctrl,
			 struct weft_ns *ns);
/* weft_path_wait_end(), weft_ns_close() unless @ns is NULL, and weft_disconnect(): a message is
 * printed while the controller takes its time to shut down. */
void weft_host_disconnect(struct weft_path_wait *waiting, struct weft_ns *ns,
			  struct weft_ctrl *ctrl);
/* "… has no namespace 7; "weft ls …" shows them"; returns -ENODEV. */
int weft_host_no_ns(const char *uri, uint32_t nsid, struct weft_err *err);
/* weft_ns_open(), with that sentence. */
int weft_host_ns_open(struct weft_ctrl *ctrl, const char *uri, uint32_t nsid, struct weft_ns **ns,
		      struct weft_err *err);

/* "; 1 of its 2 paths is not live: 127.0.0.1:4421 reconnecting: …": what an answer about all paths
 * may lack. "": all are live. */
void weft_host_lost_paths(struct weft_ctrl *ctrl, char *text, size_t size);

/* The nsid to use: @wanted or the URI's nsid=, or the only one there is. */
int weft_host_nsid(struct weft_ctrl *ctrl, const char *uri, uint32_t wanted, uint32_t *nsid,
		   struct weft_err *err);

/* Prints a WEFT_EVENT_STATE on standard error: a loss once, and its end. @lost starts as false. */
void weft_host_print_state(const char *command, const char *uri, const struct weft_event *event,
			   bool *lost);

/* Warns on standard error of referrals that were not followed. */
void weft_host_print_unfollowed(const char *command, const struct weft_discovery *log);

/* A controller that a command works on, or a namespace of it. */
struct weft_remote {
	struct weft_ctrl *ctrl;
	/* After weft_remote_connect() NULL, but for weft_remote_hold_ns(), and ns_info is empty. */
	struct weft_ns *ns;
	struct weft_ctrl_info info;
	struct weft_ns_info ns_info;
	struct weft_path_wait waiting;
};

/* The controller alone; weft_remote_close() ends this, too. @command: as of weft_host_connect(). */
int weft_remote_connect(struct weft_remote *remote, const char *command, const char *uri,
			const struct weft_options *options, struct weft_err *err);
/* Where there are several paths: from now on commands about this namespace take one that leads to
 * it. They are sent anywhere if it cannot be opened, and refused. */
void weft_remote_hold_ns(struct weft_remote *remote, uint32_t nsid);
/* @command: as of weft_host_connect(). @nsid: of --ns; 0: not given. */
int weft_remote_open(struct weft_remote *remote, const char *command, const char *uri,
		     uint32_t nsid, const struct weft_options *options, struct weft_err *err);
/* weft_queue_open(), and weft_run(); a message is printed while the target does not answer. */
int weft_remote_queue_open(struct weft_remote *remote, struct weft_queue **queue,
			   struct weft_err *err);
int weft_remote_run(struct weft_remote *remote, struct weft_queue *queue, struct weft_cmd *cmd,
		    struct weft_err *err);
/* For weft_path_wait_asked(): "Read". */
const char *weft_remote_op_text(enum weft_op_code op);
/* Whether writes that completed since @since, of the same controller, may be lost: a connection was
 * lost, and a target that lost its power, and with it a volatile cache, cannot be told from one
 * that did not. A flush after that would succeed. */
bool weft_remote_cache_may_be_lost(const struct weft_remote *remote,
				   const struct weft_ctrl_info *since);
/* Also if one of the first two has failed half way; no I/O is in flight. */
void weft_remote_close(struct weft_remote *remote);

/* --- range.c: what a user asks for, against the namespace ------------------------------------- */

/* "--offset 1000 is not a multiple of the block size 4096: use 0 or 4096"; @option has its
 * dashes. */
int weft_cli_check_multiple(const char *option, uint64_t value, uint32_t block,
			    struct weft_err *err);
/* Whether --offset and --length (WEFT_CLI_ALL: not given) are whole blocks, and inside of it. */
int weft_range_check(const char *uri, const struct weft_ns_info *info, uint64_t offset,
		     uint64_t length, struct weft_err *err);

#endif
