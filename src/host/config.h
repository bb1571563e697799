/* config.h - what a URI, its words and a program's options add up to. */
#ifndef WEFT_HOST_CONFIG_H
#define WEFT_HOST_CONFIG_H

#include <weft/host.h>

#include "proto/uri.h"
#include "transport/link.h"

/* What a connection was asked for, with every default settled. */
struct host_config {
	struct weft_options options;
	const struct weft_link_transport *transport;
	struct sockaddr_storage addr;
	char subnqn[WEFT_NQN_MAX + 1];
	char hostnqn[WEFT_NQN_MAX + 1];
	uint8_t hostid[16];
	uint32_t nsid;
};

/* Everything but the address, which has to be looked up. */
int host_config_parse(const struct weft_uri_parts *parts, const struct weft_options *options,
		      struct host_config *config, struct weft_err *err);

#endif
