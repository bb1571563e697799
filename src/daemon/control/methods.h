/* methods.h - the control methods: one table, the parameters and one function each. */
#ifndef WEFT_DAEMON_CONTROL_METHODS_H
#define WEFT_DAEMON_CONTROL_METHODS_H

#include "daemon/config/config.h"
#include "daemon/control/rpc.h"

struct weft_daemon;

extern const struct weft_rpc_method weft_rpc_methods[];

/* warnings.c: add sentences about accepted settings to @warnings, a list. */
void weft_warn_spec(json_t *warnings, const struct weft_spec *spec);
void weft_warn_subsys(json_t *warnings, const struct weft_subsys_config *subsys);
/* What the ANA rules of a subsystem can name: lists of numbers. */
struct weft_ana_known {
	const char *nqn;
	unsigned node; /* of a cluster; 0: we are alone */
	json_t *ports, *groups;
};
void weft_warn_ana(json_t *warnings, const struct weft_ana_known *known,
		   const struct weft_items *rules);
/* The namespace has @size now; warns if the configuration has another one. */
void weft_warn_size(json_t *warnings, struct weft_daemon *d, const char *nqn, uint32_t nsid,
		    uint64_t size);
/* The list of hosts changed on this member of a cluster only. */
void weft_warn_members(json_t *warnings, struct weft_daemon *d, const char *nqn);
/* A namespace was @done ("resized") on this member of a cluster only. */
void weft_warn_members_ns(json_t *warnings, struct weft_daemon *d, char nqn[WEFT_NQN_MAX + 1],
			  uint32_t nsid, const char *done);
void weft_daemon_log_warnings(json_t *warnings);
/* weft_rpc_result() with the warnings in it and in the log; owns both. */
void weft_rpc_result_warned(struct weft_rpc_call *call, json_t *result, json_t *warnings);

/* nqn "", where it may be left out, stands for the only subsystem there is. */

struct weft_subsys_params {
	char nqn[WEFT_NQN_MAX + 1];
};

struct weft_host_params {
	char nqn[WEFT_NQN_MAX + 1], host[WEFT_NQN_MAX + 1]; /* host: or "any" */
};

struct weft_ns_params {
	char nqn[WEFT_NQN_MAX + 1];
	uint32_t nsid;
	uint64_t size; /* namespace-resize … */
	bool shrink;   /* … and whether it may become smaller */
};

struct weft_ns_add_params {
	char nqn[WEFT_NQN_MAX + 1];
	struct weft_ns_config ns;
};

struct weft_ana_params {
	char nqn[WEFT_NQN_MAX + 1];
	struct weft_items rules; /* struct weft_ana_rule */
	bool replace;            /* removes all other rules */
};

struct weft_listener_params {
	struct weft_uri uri;
};

struct weft_save_params {
	char path[4096]; /* "": the file that was read at the start */
	bool force;      /* replaces any file */
};

struct weft_takeover_params {
	uint32_t format; /* the newest that the caller reads */
	bool drop_rdma;
};

struct weft_move_params {
	char nqn[WEFT_NQN_MAX + 1];
	uint32_t group, node; /* group 0: all */
};

void weft_method_drain(struct weft_rpc_call *call, void *params);   /* struct weft_subsys_params */
void weft_method_undrain(struct weft_rpc_call *call, void *params); /* struct weft_subsys_params */
void weft_method_move(struct weft_rpc_call *call, void *params);    /* struct weft_move_params */
void weft_method_status(struct weft_rpc_call *call, void *params);
void weft_method_subsys_add(struct weft_rpc_call *call,
			    void *params); /* struct weft_subsys_config */
void weft_method_subsys_remove(struct weft_rpc_call *call, void *params);
void weft_method_host_allow(struct weft_rpc_call *call, void *params);
void weft_method_host_refuse(struct weft_rpc_call *call, void *params);
void weft_method_ns_add(struct weft_rpc_call *call, void *params);
void weft_method_ns_resize(struct weft_rpc_call *call, void *params);
void weft_method_ns_remove(struct weft_rpc_call *call, void *params);
void weft_method_ana_set(struct weft_rpc_call *call, void *params);
void weft_method_listener_add(struct weft_rpc_call *call, void *params);
void weft_method_listener_remove(struct weft_rpc_call *call, void *params);
void weft_method_save(struct weft_rpc_call *call, void *params);
void weft_method_takeover(struct weft_rpc_call *call, void *params);

#endif
