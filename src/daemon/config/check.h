/* check.h - checks of a configuration that need more than one value: the finish() of each map in
 * config.c. */
#ifndef WEFT_DAEMON_CONFIG_CHECK_H
#define WEFT_DAEMON_CONFIG_CHECK_H

#include "daemon/config/decode.h"

int weft_config_check_ns(struct weft_decoder *d, void *ns); /* struct weft_ns_config */
int weft_config_check_cluster(struct weft_decoder *d,
			      void *cluster);                       /* struct weft_cluster_config */
int weft_config_check_subsys(struct weft_decoder *d, void *subsys); /* struct weft_subsys_config */
int weft_config_check(struct weft_decoder *d, void *config);        /* struct weft_config */

/* Listeners without a port id get the lowest that nobody asked for, in order. */
struct weft_config;
void weft_config_assign_portids(struct weft_config *config);

#endif
