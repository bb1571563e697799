/* config.h - the configuration of `weft serve`, decoded and checked.
 *
 * The same schemas decode the file, the flags and the parameters of the control methods: an item of
 * `subsystems:` is what subsystem-add takes, an item of `namespaces:` what namespace-add takes. */
#ifndef WEFT_DAEMON_CONFIG_CONFIG_H
#define WEFT_DAEMON_CONFIG_CONFIG_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "backend/backend.h"
#include "daemon/config/decode.h"
#include "proto/uri.h"
#include "reactor/reactor.h"
#include "target/target.h"

#define WEFT_STATE_MAX   1024 /* "file:PATH" */
#define WEFT_CONTROL_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

struct weft_ns_config {
	uint32_t nsid;  /* 0: the lowest free one */
	uint32_t block; /* 0: what suits the backend */
	char uuid[37];  /* "": derived */
	bool read_only;
	uint32_t ana_group; /* 0: 1 */
	struct weft_spec spec;
	/* A takeover: opened with the old process's descriptor @fd, which may be -1. */
	bool adopted, sync_failed;
	bool refiltered; /* adopted, with other filters than in the old process */
	int fd;
	uint64_t size;
	uint64_t config_size;    /* as configured, also in a takeover; 0: not configured */
	struct weft_backend *be; /* from @spec; NULL: not opened yet, or given to the target */
};

enum weft_allowed_hosts {
	WEFT_ALLOWED_DEFAULT, /* not configured: any host, while only loopback is listened on */
	WEFT_ALLOWED_ANY,
	WEFT_ALLOWED_LISTED,
};

/* Several targets that serve one subsystem. */
struct weft_cluster_config {
	uint32_t node, nodes; /* 0: we are alone */
};

struct weft_subsys_config {
	char nqn[WEFT_NQN_MAX + 1];
	char serial[21], model[41];     /* "": the default */
	char state[WEFT_STATE_MAX + 1]; /* SPEC of its store; "": in memory */
	struct weft_cluster_config cluster;
	enum weft_allowed_hosts access;
	struct weft_items hosts;      /* char[WEFT_NQN_MAX + 1] */
	struct weft_items namespaces; /* struct weft_ns_config */
	struct weft_items ana;        /* struct weft_ana_rule */
};

struct weft_config {
	struct weft_items listen; /* struct weft_uri */
	char control[WEFT_CONTROL_MAX + 1];
	bool control_default;
	cpu_set_t cpus;
	unsigned engine; /* enum weft_engine */
	bool poll;
	uint32_t depth, queues, queues_max;
	struct weft_items subsystems; /* struct weft_subsys_config */
};

extern const struct weft_schema weft_ns_schema, weft_subsys_schema;
extern const struct weft_schema_field weft_ana_item; /* of a list of ANA rules */

/* Decodes and checks everything; opens nothing. */
int weft_config_read(struct weft_config *config, const struct weft_doc *doc, struct weft_err *err);
/* Warnings about settings that are accepted and may not be meant: a list of sentences, which the
 * caller owns. */
json_t *weft_config_warnings(const struct weft_config *config);
/* NULL: the configuration has no such subsystem. */
struct weft_subsys_config *weft_config_subsys(struct weft_config *config, const char *nqn);
struct weft_ns_config *weft_config_ns(struct weft_config *config, const char *nqn, uint32_t nsid);
/* Closes backends that were not given to the target. */
void weft_config_free(struct weft_config *config);
void weft_subsys_config_free(struct weft_subsys_config *subsys);
void weft_ns_config_free(struct weft_ns_config *ns);

weft_decode_fn weft_decode_hostnqn, weft_decode_subnqn; /* char[WEFT_NQN_MAX + 1] */
weft_decode_fn weft_decode_listen;                      /* struct weft_uri */

/* -EPERM if a subsystem has no list of hosts and @exposed, an address that is not loopback, is
 * listened on. NULL: there is no such address. */
int weft_config_check_allowed(const struct weft_subsys_config *subsys, const char *exposed,
			      const struct weft_doc *doc, const char *path, struct weft_err *err);

/* The path of the control socket if none is configured. */
void weft_control_socket_default_path(char path[WEFT_CONTROL_MAX + 1]);

#endif
