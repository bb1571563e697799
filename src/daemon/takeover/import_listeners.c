/* import_listeners.c - listeners of a takeover. Running ones are adopted; configured ones that do
 * not run are opened.
 *
 *   before "go"   a listener that cannot be opened fails the takeover
 *   after "go"    RDMA listeners cannot be adopted: opening is retried until the old process exits
 *
 * An adopted listener keeps its port id: hosts and ANA rules use it. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/takeover/frames.h"
#include "daemon/internal.h"
#include "proto/nvme.h"

enum { RETRY_MS = 50, TRIES = 100 };

/* --- match configured and running listeners --------------------------------------------------- */

static in_port_t *port_of(struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? &((struct sockaddr_in *)addr)->sin_port :
					    &((struct sockaddr_in6 *)addr)->sin6_port;
}

/* A configured port 0 matches any port. */
static bool is_same_listener(struct weft_uri there, const struct weft_uri *uri)
{
	struct sockaddr_storage addr = uri->addr;

	if (!*port_of(&addr))
		*port_of(&there.addr) = 0;
	return there.trtype == uri->trtype && weft_addr_equal(&there.addr, &addr);
}

enum { NOT_CONFIGURED = -1 };

/* The first running listener at the address of @uri, number @index of the configuration, that no
 * other one matches. */
static void match_running(int *configured, const struct weft_target_state *state,
			  const struct weft_uri *uri, int index)
{
	const struct weft_listener_state *running = state->listeners.at;
	struct weft_uri there;

	for (unsigned i = 0; i < state->listeners.count; i++) {
		if (configured[i] != NOT_CONFIGURED ||
		    weft_uri_parse(running[i].uri, &there, NULL) < 0 ||
		    !is_same_listener(there, uri))
			continue;
		configured[i] = index;
		return;
	}
}

/* By running listener: its number in the configuration, or NOT_CONFIGURED. Configured listeners
 * with a port are matched first, those with port 0 get the rest. NULL: out of memory. */
static int *match_listeners(const struct weft_config *config, const struct weft_target_state *state)
{
	int *configured = malloc((state->listeners.count + 1) * sizeof(*configured));
	const struct weft_uri *uri = config->listen.at;

	for (unsigned i = 0; configured && i < state->listeners.count; i++)
		configured[i] = NOT_CONFIGURED;
	for (unsigned i = 0; configured && i < config->listen.count; i++)
		if (weft_addr_port(&uri[i].addr))
			match_running(configured, state, &uri[i], (int)i);
	for (unsigned i = 0; configured && i < config->listen.count; i++)
		if (!weft_addr_port(&uri[i].addr))
			match_running(configured, state, &uri[i], (int)i);
	return configured;
}

static bool is_running(const int *configured, const struct weft_target_state *state, unsigned index)
{
	for (unsigned i = 0; i < state->listeners.count; i++)
		if (configured[i] == (int)index)
			return true;
	return false;
}

/* --- port ids --------------------------------------------------------------------------------- */

static const struct weft_listener_state *find_by_portid(const struct weft_target_state *state,
							uint16_t portid)
{
	const struct weft_listener_state *running = state->listeners.at;

	for (unsigned i = 0; i < state->listeners.count; i++)
		if (running[i].portid == portid)
			return &running[i];
	return NULL;
}

static bool portid_is_configured(const struct weft_config *config, const struct weft_uri *but)
{
	const struct weft_uri *uri = config->listen.at;

	for (unsigned i = 0; i < config->listen.count; i++)
		if (&uri[i] != but && uri[i].portid == but->portid)
			return true;
	return false;
}

/* A configured port id must be free; without one a free id is chosen. */
static int choose_portid(const struct weft_config *config, const struct weft_target_state *state,
			 struct weft_uri *uri, struct weft_err *err)
{
	const struct weft_listener_state *other = find_by_portid(state, uri->portid);
	char text[WEFT_URI_MAX];

	if (other && !uri->portid_chosen) {
		weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
		return weft_fail(err, -EEXIST,
				 "%s: portid %u is that of %s, which is listened on; give it "
				 "another one, or none",
				 text, uri->portid, other->uri);
	}
	/* There are fewer listeners than ids, and 0 is none. */
	while (find_by_portid(state, uri->portid) || portid_is_configured(config, uri))
		uri->portid = (uint16_t)(uri->portid % UINT16_MAX + 1);
	return 0;
}

static int choose_portids(struct weft_config *config, const struct weft_target_state *state,
			  const int *configured, struct weft_err *err)
{
	const struct weft_listener_state *running = state->listeners.at;
	struct weft_uri *uri = config->listen.at;
	int rc = 0;

	for (unsigned i = 0; i < state->listeners.count; i++)
		if (configured[i] != NOT_CONFIGURED && uri[configured[i]].portid_chosen)
			uri[configured[i]].portid = (uint16_t)running[i].portid;
	for (unsigned i = 0; i < config->listen.count && !rc; i++)
		if (!is_running(configured, state, i))
			rc = choose_portid(config, state, &uri[i], err);
	return rc;
}

/* --- before "go" ------------------------------------------------------------------------------ */

static int listen_unless_in_use(struct weft_daemon *d, const struct weft_uri *uri,
				struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_listener_add(d->target, uri, &why);

	if (rc == -EADDRINUSE && uri->trtype == NVMF_TRTYPE_RDMA)
		return 0;
	return rc < 0 ? weft_fail(err, rc, "%s", why.text) : 0;
}

int weft_takeover_open_listeners(struct weft_daemon *d, const struct weft_target_state *state,
				 struct weft_err *err)
{
	_cleanup_(weft_freep) int *configured = match_listeners(d->config, state);
	const struct weft_uri *uri = d->config->listen.at;
	int rc;

	assert(d->import);
	if (!configured)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = choose_portids(d->config, state, configured, err);
	for (unsigned i = 0; i < d->config->listen.count && !rc; i++)
		if (!is_running(configured, state, i))
			rc = listen_unless_in_use(d, &uri[i], err);
	return rc;
}

/* --- adopted listeners whose configuration differs -------------------------------------------- */

static void warn_kept_portid(json_t *warnings, const char *source, const struct weft_uri *uri,
			     const struct weft_listener_state *running)
{
	if (uri->portid == running->portid)
		return;
	json_array_append_new(
		warnings,
		json_sprintf("%s keeps port id %u, and %s says portid=%u; weft ctl listener-remove "
			     "and listener-add change it",
			     running->uri, running->portid, source, uri->portid));
}

static void warn_kept_listener(json_t *warnings, const char *source,
			       const struct weft_listener_state *running)
{
	json_array_append_new(
		warnings, json_sprintf("%s is still listened on, and %s does not name it; weft ctl "
				       "listener-remove listen=%s closes it",
				       running->uri, source, running->uri));
}

void weft_takeover_warn_listeners(json_t *warnings, const char *source,
				  const struct weft_config *config,
				  const struct weft_target_state *state)
{
	_cleanup_(weft_freep) int *configured = match_listeners(config, state);
	const struct weft_listener_state *running = state->listeners.at;
	const struct weft_uri *uri = config->listen.at;

	for (unsigned i = 0; configured && i < state->listeners.count; i++) {
		if (configured[i] == NOT_CONFIGURED)
			warn_kept_listener(warnings, source, &running[i]);
		else
			warn_kept_portid(warnings, source, &uri[configured[i]], &running[i]);
	}
}

/* --- after "go" ------------------------------------------------------------------------------- */

static bool is_listening(struct weft_daemon *d, const struct weft_uri *uri)
{
	json_auto_t *list = weft_daemon_list_listeners(d);
	struct weft_uri there;
	json_t *item;
	size_t index;

	json_array_foreach(list, index, item) {
		if (weft_uri_parse(json_string_value(item), &there, NULL) == 0 &&
		    is_same_listener(there, uri))
			return true;
	}
	return false;
}

static int listen_on(struct weft_daemon *d, const struct weft_uri *uri, struct weft_err *err)
{
	char text[WEFT_URI_MAX];
	int rc = weft_listener_add(d->target, uri, err);

	weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
	if (!rc)
		weft_info("listening on %s", text);
	return rc;
}

static int listen_missing(struct weft_daemon *d, struct weft_err *err)
{
	const struct weft_uri *uri = d->config->listen.at;
	int rc = 0;

	for (unsigned i = 0; i < d->config->listen.count && !rc; i++)
		if (!is_listening(d, &uri[i]))
			rc = listen_on(d, &uri[i], err);
	return rc;
}

static void listen_retry(struct weft_timer *timer)
{
	struct weft_daemon *d = container_of(timer, struct weft_daemon, listen_retry);

	if (!d->stopping)
		weft_takeover_retry_listeners(d);
}

void weft_takeover_retry_listeners(struct weft_daemon *d)
{
	struct weft_err err = { "" };
	int rc = listen_missing(d, &err);

	assert_on(d->control_reactor);
	assert(!d->import); /* "go" has come */
	if (rc == -EADDRINUSE && d->listen_tries++ < TRIES) {
		d->listen_retry.fn = listen_retry;
		weft_timer_set(d->control_reactor, &d->listen_retry, RETRY_MS);
	} else if (rc < 0) {
		weft_error("%s", err.text);
	}
}
