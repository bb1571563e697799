/* host_uri.c - a URI before anybody is connected to: what is wrong with it is the user's mistake
 * and not the target's, what its words add up to, and the other URIs that can be made from it. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "host/config.h"

/* What the first of the paths asks for; all of them are looked at. */
static int settle(const char *uris, const struct weft_options *options, struct host_config *config,
		  struct weft_err *err)
{
	struct host_place places[HOST_PATHS_MAX];
	int rc = host_places_parse(uris, options, places, err);

	if (rc < 0)
		return rc;
	*config = places[0].config;
	return 0;
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
