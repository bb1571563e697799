/* config.h - the options of a connection: what the URIs, their words and the program's options add
 * up to. */
#ifndef WEFT_HOST_CONFIG_H
#define WEFT_HOST_CONFIG_H

#include <sched.h>
#include <weft/host.h>

#include "proto/uri.h"
#include "transport/link.h"

enum { HOST_PATHS_MAX = WEFT_PATHS_MAX };

/* What a connection was asked for, with every default settled. */
struct host_config {
	struct weft_options options;
	const struct weft_link_transport *transport;
	struct sockaddr_storage addr;
	char subnqn[WEFT_NQN_MAX + 1];
	char hostnqn[WEFT_NQN_MAX + 1];
	bool hostnqn_generated; /* hostnqn: from the machine's id and the user */
	uint8_t hostid[16];
	uint32_t nsid;
	cpu_set_t cpus; /* none: not given */
	uint64_t words; /* of URIs: a bit for each that was given */
};

/* A path spec: a URI, taken apart, with its options and defaults. */
struct host_path_spec {
	struct weft_uri_parts parts;
	struct host_config config; /* everything but the address, which must be resolved */
};

/* @shared: words of other URIs, which also apply, unless this URI says otherwise; "": none. */
int host_config_parse(const struct weft_uri_parts *parts, const char *shared,
		      const struct weft_options *options, struct host_config *config,
		      struct weft_err *err);

/* Whether a URI had @word, such as "nsid". */
bool host_config_has(const struct host_config *config, const char *word);

/* path_specs.c: parses "URI,URI" into @specs, which has room for HOST_PATHS_MAX. Returns how many
 * there are. */
int host_path_specs_parse(const char *uris, const struct weft_options *options,
			  struct host_path_spec *specs, struct weft_err *err);
/* Both lead to one subsystem, in the name of one host. */
int host_path_specs_agree(const struct host_config *a, const struct host_config *b,
			  struct weft_err *err);

#endif
