/* internal.h - the running daemon: one of it, on the control reactor's thread. */
#ifndef WEFT_DAEMON_INTERNAL_H
#define WEFT_DAEMON_INTERNAL_H

#include <time.h>

#include "base/echo.h"
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
	struct timespec started;
	/* NQNs of subsystems that any host may use because only loopback is listened on. */
	json_t *open_by_default;

	struct weft_list adds;  /* subsys_add.c's: subsystems that join */
	struct weft_list saves; /* save.c's: the first is under way */
	struct weft_takeover_export
		*export; /* another process takes our place; NULL: none wants to */
	struct weft_takeover_import
		*import;                /* we take that of another one; NULL: we do not, or have */
	struct weft_timer listen_retry; /* for what it listened on and did not hand over */
	unsigned listen_tries;

	struct weft_task start;
	struct weft_sock signals;
	struct weft_op signal_op;
	bool stopping;  /* begun, by a signal or by a start that failed */
	bool signalled; /* the next signal is the second */
	weft_echo signal_ns;
	int rc;
	struct weft_err *err;
};

/* --- apply.c: from a configuration to the target ---------------------------------------------- */

/* @wait: for a second, on this thread, while somebody else has it locked; not once hosts are
 * served. */
int weft_config_ns_open(struct weft_ns_config *ns, bool wait, struct weft_err *err);
int weft_config_subsys_open(struct weft_subsys_config *subsys, bool wait, struct weft_err *err);
/* What comes over the control socket was not written in our working directory. */
int weft_config_ns_check_path(const struct weft_ns_config *ns, struct weft_err *err);
int weft_config_subsys_check_path(const struct weft_subsys_config *subsys, struct weft_err *err);
/* What its state is kept in, spec "": in memory. */
struct weft_store_options weft_config_store_options(struct weft_daemon *d,
						    const struct weft_subsys_config *subsys);
/* Backends are open, and so is @store (NULL: in memory). On -errno, a subsystem in @s is half made
 * and the caller's to remove; without one, @store is still the caller's. */
int weft_config_subsys_apply(struct weft_daemon *d, struct weft_subsys_config *subsys,
			     struct weft_store *store, struct weft_subsys **s,
			     struct weft_err *err);
int weft_config_ns_apply(struct weft_subsys *s, struct weft_ns_config *ns, struct weft_err *err);

/* --- daemon.c ---------------------------------------------------------------------------------- */

int weft_daemon_open_backends(struct weft_daemon *d);
int weft_daemon_add_subsystems(struct weft_daemon *d);
int weft_daemon_create_target(struct weft_daemon *d);
void weft_daemon_stop(struct weft_daemon *d);
bool weft_daemon_stop_requested(const struct weft_daemon *d); /* also where nobody has seen it yet */
int weft_daemon_start_control(struct weft_daemon *d);
void weft_daemon_announce_ready(struct weft_daemon *d); /* says so to whoever wants to know */

/* --- subsys_add.c: a subsystem comes while others are served ---------------------------------- */

void weft_daemon_cancel_adds(
	struct weft_daemon *d); /* we stop: those that still join are answered */

/* --- export.c, import.c: one process after the other ---------------------------------------------- */

/* The process that wanted our place does not get it. false: that is said, and we stop, as soon as
 * everything has come to rest or does not. */
bool weft_takeover_export_cancel(struct weft_daemon *d);
/* What we serve, and its storage. */
int weft_takeover_export_config(struct weft_daemon *d, uint32_t format, int channel);
/* Goes through to weft_daemon_announce_ready(), or ends the process. */
void weft_takeover_import_start(struct weft_daemon *d);
/* On what is configured and was not handed over: before anybody is served; and, what the other
 * process still has, after. */
struct weft_target_state;
int weft_takeover_open_listeners(struct weft_daemon *d, const struct weft_target_state *state,
				 struct weft_err *err);
void weft_takeover_retry_listeners(struct weft_daemon *d);
void weft_takeover_warn_listeners(json_t *warnings, const char *source,
				  const struct weft_config *config,
				  const struct weft_target_state *state);
/* What runs as before although another thing is configured is said. */
void weft_takeover_warn_kept(struct weft_daemon *d, const struct weft_target_state *state);
struct weft_running_config;
/* Who may connect is as configured: ends the associations of others, and says what changed. */
void weft_takeover_apply_access(struct weft_daemon *d, const struct weft_running_config *running);
/* What is configured is what runs; descriptors and identities of that go into the configuration. */
int weft_takeover_check_config(struct weft_config *config, struct weft_running_config *running,
			       struct weft_err *err);

/* --- query.c: questions to the target ---------------------------------------------------------- */

/* @nqn "": the only one there is, whose name it receives. */
int weft_daemon_find_subsys(struct weft_daemon *d, char nqn[WEFT_NQN_MAX + 1],
			    struct weft_subsys **s, struct weft_err *err);
/* A listener that is not loopback; "": there is none. */
void weft_daemon_exposed_listener(struct weft_daemon *d, char uri[WEFT_URI_MAX]);
/* A namespace by subsystem and id; false: there is none. @info is valid until it changes. */
bool weft_daemon_find_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid,
			 struct weft_target_ns_info *info);
/* A namespace of that subsystem is in the ANA group. */
bool weft_daemon_has_ana_group(struct weft_daemon *d, const char *nqn, uint32_t group);
bool weft_daemon_allows_any_host(struct weft_daemon *d, const char *nqn);
unsigned weft_daemon_count_hosts(struct weft_daemon *d, const char *nqn); /* on its list */
/* Which member of a cluster this target is for it; 0: of none. */
unsigned weft_daemon_cluster_node(struct weft_daemon *d, const char *nqn);
/* Controllers of other hosts. */
unsigned weft_daemon_count_other_ctrls(struct weft_daemon *d, const char *nqn, const char *host);
/* Rules about ports and groups that are not there are added to @warnings. */
void weft_daemon_warn_ana(struct weft_daemon *d, const char *nqn, const struct weft_items *rules,
			  json_t *warnings);
/* Who has the UUID, "NQN namespace 1"; false: nobody. */
bool weft_daemon_uuid_is_taken(struct weft_daemon *d, const char *uuid, char *who, size_t size);
/* [uri, …], owned by the caller. */
json_t *weft_daemon_list_listeners(struct weft_daemon *d);

/* --- log_running.c: what runs and what changed, in the log ------------------------------------------- */

void weft_daemon_log_started(struct weft_daemon *d);
void weft_daemon_log_subsys(struct weft_daemon *d, const char *nqn);
void weft_daemon_log_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid);

json_t *weft_status_json(struct weft_daemon *d);

#endif
