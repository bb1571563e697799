/* host_uri.c - a URI before anybody is connected to: what is wrong with it is the user's mistake and
 * not the target's, what its words add up to, and the other URIs that can be made from it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "host/config.h"

static int settle(const char *uri, const struct weft_options *options, struct host_config *config,
		  struct weft_err *err)
{
	struct weft_uri_parts parts;
	int rc = weft_uri_split(uri, &parts, err);

	if (rc == 0)
		rc = host_config_parse(&parts, options, config, err);
	if (rc == 0 && !parts.port)
		rc = weft_fail(err, -EINVAL, "%s: a target does not listen on port 0", uri);
	return rc;
}

int weft_host_check(const char *command, const char *uri, const struct weft_options *options,
		    struct weft_options *settled)
{
	struct weft_err err = { "" };
	struct host_config config;

	if (settle(uri, options, &config, &err) < 0) {
		fprintf(stderr, "%s: %s\n", command, err.text);
		return EXIT_USAGE;
	}
	if (settled)
		*settled = config.options;
	return EXIT_OK;
}

void weft_host_name(char *nqn, size_t size)
{
	struct host_config config;

	*nqn = '\0';
	if (!settle("nvme+tcp://localhost", NULL, &config, NULL))
		snprintf(nqn, size, "%s", config.hostnqn);
}

struct weft_place weft_uri_subsystem(const char *uri)
{
	struct weft_place place;

	snprintf(place.uri, sizeof(place.uri), "%.*s", (int)strcspn(uri, "?"), uri);
	return place;
}

struct weft_place weft_uri_service(const char *uri)
{
	struct weft_place place = weft_uri_subsystem(uri);
	char *host = strstr(place.uri, "://");

	if (host)
		host[3 + strcspn(host + 3, "/")] = '\0';
	return place;
}
