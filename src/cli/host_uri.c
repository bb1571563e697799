/* host_uri.c - checks of a URI before a connection is made, so that an error is the user's mistake
 * and not the target's; its parameters; and other URIs that are made from it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "host/config.h"

bool weft_cli_is_uri(const char *text)
{
	return !strncasecmp(text, "nvme+", 5) || strstr(text, "://");
}

/* The configuration of the first path; all of them are checked. */
static int resolve_config(const char *uris, const struct weft_options *options,
			  struct host_config *config, struct weft_err *err)
{
	struct host_path_spec specs[HOST_PATHS_MAX];
	int rc = host_path_specs_parse(uris, options, specs, err);

	if (rc < 0)
		return rc;
	*config = specs[0].config;
	return 0;
}

static int check_nsid(uint32_t option, uint32_t word, struct weft_err *err)
{
	if (!option || !word || option == word)
		return 0;
	return weft_fail(err, -EINVAL,
			 "--ns %" PRIu32 " and nsid=%" PRIu32 " of the URI are two namespaces; "
			 "leave one of them out",
			 option, word);
}

int weft_host_check(const char *command, const char *uri, const struct weft_options *options,
		    uint32_t nsid, struct weft_options *resolved)
{
	struct weft_err err = { "" };
	struct host_config config;
	int rc = resolve_config(uri, options, &config, &err);

	if (rc == 0)
		rc = check_nsid(nsid, config.nsid, &err);
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", command, err.text);
		return EXIT_USAGE;
	}
	if (resolved)
		*resolved = config.options;
	return EXIT_OK;
}

/* Without a limit, I/O that finds no path open to it would wait for ever. */
void weft_host_apply_limits(const char *uri, struct weft_options *options)
{
	uint32_t most_ms = options->loss_ms;
	struct host_config config;

	if (resolve_config(uri, options, &config, NULL) < 0)
		return;
	options->connect_ms = config.options.connect_ms;
	options->loss_ms = config.options.loss_ms;
	options->io_ms = config.options.io_ms;
	if (host_config_has(&config, "fast_io_fail"))
		options->fast_io_fail_ms = config.options.fast_io_fail_ms;
	else
		options->fast_io_fail_ms = options->loss_ms ? options->loss_ms : most_ms;
}

void weft_host_path_wait(struct weft_path_wait *waiting, const char *command, const char *uri,
			 const struct weft_options *options, struct weft_ctrl *ctrl,
			 struct weft_ns *ns)
{
	struct weft_options limited = *options;

	weft_host_apply_limits(uri, &limited);
	*waiting = (struct weft_path_wait){
		.command = command,
		.uri = uri,
		.ctrl = ctrl,
		.ns = ns,
		.connect_ms = limited.connect_ms,
		.loss_ms = limited.loss_ms,
		.fast_io_fail_ms = limited.fast_io_fail_ms,
		.io_ms = limited.io_ms,
	};
	weft_path_wait_begin(waiting);
}

bool weft_host_name(char *nqn, size_t size)
{
	struct host_config config;

	*nqn = '\0';
	if (resolve_config("nvme+tcp://localhost", NULL, &config, NULL) < 0)
		return false;
	snprintf(nqn, size, "%s", config.hostnqn);
	return config.hostnqn_generated;
}

void weft_host_id(const char *uri, const struct weft_options *options, uint8_t hostid[16])
{
	struct host_config config = { .nsid = 0 };

	resolve_config(uri, options, &config, NULL);
	memcpy(hostid, config.hostid, sizeof(config.hostid));
}

void weft_host_nqn(const char *uri, const struct weft_options *options, char nqn[224])
{
	struct host_config config = { .nsid = 0 };

	resolve_config(uri, options, &config, NULL);
	memcpy(nqn, config.hostnqn, sizeof(config.hostnqn));
}

struct weft_uri_buf weft_uri_subsystem(const char *uri)
{
	struct weft_uri_buf place;

	snprintf(place.uri, sizeof(place.uri), "%.*s", (int)strcspn(uri, "?"), uri);
	return place;
}

struct weft_uri_buf weft_uri_service(const char *uri)
{
	struct weft_uri_buf place = weft_uri_subsystem(uri);
	char *host = strstr(place.uri, "://");

	if (host)
		host[3 + strcspn(host + 3, "/")] = '\0';
	return place;
}
