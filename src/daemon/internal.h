/* internal.h - the running daemon: one per process; all of it belongs to the control reactor's
 * thread. */
#ifndef WEFT_DAEMON_INTERNAL_H
#define WEFT_DAEMON_INTERNAL_H

#include <time.h>

#include "base/debounce.h"
#include "daemon/config/config.h"
#include "daemon/control/socket.h"
#include "daemon/daemon.h"
#include "daemon/control/rpc.h"
#include "daemon/reactor_threads.h"
#include "target/target.h"

struct weft_takeover_export;
struct weft_takeover_import;

struct weft_daemon {
	struct weft_config *config;
	const struct weft_serve_options *options;
	const struct weft_doc *doc;
	struct weft_reactor *control_reactor;
	struct weft_reactor_threads threads;
	struct weft_target *target;
	struct weft_control_socket *control;
	struct weft_rpc rpc;
	uint64_t started_ns;
	/* NQNs of subsystems that any host may use because only loopback is listened on. */
	json_t *open_by_default;

	struct weft_list adds;  /* subsys_add.c: subsystems that join */
	struct weft_list saves; /* save.c: the first is under way */
	/* We export to a successor; NULL: there is none. */
	struct weft_takeover_export *export;
	/* We import from an old process; NULL: we do not, or have. */
	struct weft_takeover_import *import;
	struct weft_timer listen_retry; /* for listeners that could not be adopted */
	unsigned listen_tries;

	struct weft_task start;
	struct weft_sock signals;
	struct weft_op signal_op;
	bool stopping;  /* a signal or a failed start has begun it */
	bool signalled; /* the next signal is the second */
	weft_signal_debounce signal_ns;
	int rc;
	struct weft_err *err;
};

/* --- config/apply.c: a configuration becomes subsystems and namespaces ------------------------ */

/* @wait: blocks for up to a second while another process has it locked; not once hosts are
 * served. */
int weft_config_ns_open(struct weft_ns_config *ns, bool wait, struct weft_err *err);
int weft_config_subsys_open(struct weft_subsys_config *subsys, bool wait, struct weft_err *err);
/* The subsystem cannot be opened because another process is its node of the cluster: replaces what
 * @err says. */
bool weft_config_node_runs(const struct weft_subsys_config *subsys, struct weft_err *err);
/* A path from the control socket must be absolute: the caller's working directory is another
 * one. */
int weft_config_ns_check_path(const struct weft_ns_config *ns, struct weft_err *err);
int weft_config_subsys_check_path(const struct weft_subsys_config *subsys, struct weft_err *err);
/* Options of its store; spec "": in memory. */
struct weft_store_options weft_config_store_options(struct weft_daemon *d,
						    const struct weft_subsys_config *subsys);
/* Backends are open, and so is @store (NULL: in memory). On -errno with @s set, a subsystem is half
 * made and the caller removes it; without one, the caller still owns @store. */
int weft_config_subsys_apply(struct weft_daemon *d, struct weft_subsys_config *subsys,
			     struct weft_store *store, struct weft_subsys **s,
			     struct weft_err *err);
int weft_config_ns_apply(struct weft_subsys *s, struct weft_ns_config *ns, struct weft_err *err);

/* --- daemon.c --------------------------------------------------------------------------------- */

int weft_daemon_open_backends(struct weft_daemon *d);
int weft_daemon_add_subsystems(struct weft_daemon *d);
int weft_daemon_create_target(struct weft_daemon *d);
void weft_daemon_stop(struct weft_daemon *d);
/* Also before the signal was handled. */
bool weft_daemon_stop_requested(const struct weft_daemon *d);
int weft_daemon_start_control(struct weft_daemon *d);
/* To the log, the service manager and the caller. */
void weft_daemon_announce_ready(struct weft_daemon *d);

/* --- control/subsys_add.c: a subsystem is added while others are served ----------------------- */

/* We stop: calls whose subsystems still join are answered. */
void weft_daemon_cancel_adds(struct weft_daemon *d);

/* --- takeover/: one process takes the place of the other -------------------------------------- */

/* Ends the takeover. false: the target is freezing; the takeover ends, and we stop, when that is
 * over. */
bool weft_takeover_export_cancel(struct weft_daemon *d);
/* The running configuration, with the descriptors of its storage. */
int weft_takeover_export_config(struct weft_daemon *d, uint32_t format, int channel);
/* Ends with weft_daemon_announce_ready(), or exits the process. */
void weft_takeover_import_start(struct weft_daemon *d);
/* Listens where the configuration says and no listener was adopted: before anybody is served; and,
 * for listeners that the old process still has, afterwards. */
struct weft_target_state;
int weft_takeover_open_listeners(struct weft_daemon *d, const struct weft_target_state *state,
				 struct weft_err *err);
void weft_takeover_retry_listeners(struct weft_daemon *d);
void weft_takeover_warn_listeners(json_t *warnings, const char *source,
				  const struct weft_config *config,
				  const struct weft_target_state *state);
/* Warns of settings that stay as they run although another value is configured. */
void weft_takeover_warn_kept(struct weft_daemon *d, const struct weft_target_state *state);
struct weft_running_config;
/* Applies the configured lists of allowed hosts: ends the associations of others, and logs what
 * changed. */
void weft_takeover_apply_access(struct weft_daemon *d, const struct weft_running_config *running);
/* Checks that the configuration is the one that runs; copies descriptors and identities into it. */
int weft_takeover_check_config(struct weft_config *config, struct weft_running_config *running,
			       struct weft_err *err);

/* --- query.c: look something up in the target ------------------------------------------------- */

/* @nqn "": the only subsystem there is, whose NQN it receives. */
int weft_daemon_find_subsys(struct weft_daemon *d, char nqn[WEFT_NQN_MAX + 1],
			    struct weft_subsys **s, struct weft_err *err);
/* A listener that is not on loopback; "": there is none. */
void weft_daemon_exposed_listener(struct weft_daemon *d, char uri[WEFT_URI_MAX]);
/* A namespace by subsystem and id; false: there is none. @info is valid until it changes. */
bool weft_daemon_find_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid,
			 struct weft_target_ns_info *info);
/* A namespace of that subsystem is in the ANA group. */
bool weft_daemon_has_ana_group(struct weft_daemon *d, const char *nqn, uint32_t group);
bool weft_daemon_allows_any_host(struct weft_daemon *d, const char *nqn);
unsigned weft_daemon_count_hosts(struct weft_daemon *d, const char *nqn); /* on its list */
/* Our node in the cluster that serves it; 0: no cluster. */
unsigned weft_daemon_cluster_node(struct weft_daemon *d, const char *nqn);
/* Controllers of other hosts. */
unsigned weft_daemon_count_other_ctrls(struct weft_daemon *d, const char *nqn, const char *host);
/* Adds warnings about rules for ports and groups that do not exist to @warnings. */
void weft_daemon_warn_ana(struct weft_daemon *d, const char *nqn, const struct weft_items *rules,
			  json_t *warnings);
/* Which namespace has the UUID, "NQN namespace 1"; false: none. */
bool weft_daemon_uuid_is_taken(struct weft_daemon *d, const char *uuid, char *who, size_t size);
/* [uri, …], owned by the caller. */
json_t *weft_daemon_list_listeners(struct weft_daemon *d);

/* --- log_running.c: what is served, in the log ------------------------------------------------ */

void weft_daemon_log_started(struct weft_daemon *d);
void weft_daemon_log_subsys(struct weft_daemon *d, const char *nqn);
void weft_daemon_log_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid);

json_t *weft_status_json(struct weft_daemon *d);

/* sd_notify.c: tells the service manager how far we are. "READY=1", "STOPPING=1". Does nothing if
 * $NOTIFY_SOCKET is not set. */
void weft_sd_notify(const char *state);

#endif
