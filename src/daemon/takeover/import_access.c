/* import_access.c - apply the new list of allowed hosts after a takeover.
 *
 * The successor's configuration decides. Hosts that it does not allow are disconnected, as by
 * host-refuse. The log has a line for each subsystem whose list changed, a warning where a host
 * is allowed that was not. */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/plural.h"
#include "daemon/takeover/frames.h"
#include "daemon/internal.h"

enum { NAMES_MAX = 4 };

/* Hosts that are on one list and not on the other: how many, and the names of the first. */
struct hosts {
	unsigned count;
	char names[NAMES_MAX * (WEFT_NQN_MAX + 2) + 32];
};

static bool has_host(const struct weft_items *list, const char *nqn)
{
	const char(*host)[WEFT_NQN_MAX + 1] = list->at;

	for (unsigned i = 0; i < list->count; i++)
		if (!strcmp(host[i], nqn))
			return true;
	return false;
}

static void append_name(struct hosts *hosts, const char *text)
{
	size_t len = strlen(hosts->names);

	snprintf(hosts->names + len, sizeof(hosts->names) - len, "%s", text);
}

static struct hosts hosts_missing(const struct weft_items *list, const struct weft_items *from)
{
	const char(*host)[WEFT_NQN_MAX + 1] = list->at;
	struct hosts missing = { 0 };
	char more[32];

	for (unsigned i = 0; i < list->count; i++) {
		if (has_host(from, host[i]) || ++missing.count > NAMES_MAX)
			continue;
		append_name(&missing, missing.count > 1 ? ", " : "");
		append_name(&missing, host[i]);
	}
	if (missing.count > NAMES_MAX) {
		snprintf(more, sizeof(more), " and %u more", missing.count - NAMES_MAX);
		append_name(&missing, more);
	}
	return missing;
}

/* --- sentences; true: a host may connect that could not, or the other way round --------------- */

static bool log_list_change(const struct weft_running_subsys *was,
			    const struct weft_subsys_config *is)
{
	const struct hosts come = hosts_missing(&is->hosts, &was->hosts);
	const struct hosts go = hosts_missing(&was->hosts, &is->hosts);

	if (!come.count && !go.count)
		return false;
	weft_log(come.count ? WEFT_LOG_WARN : WEFT_LOG_INFO, "%s: %s%s%s%s%s", is->nqn, come.names,
		 come.count ? " may connect from now on" : "", come.count && go.count ? "; " : "",
		 go.names, go.count ? " may no longer connect" : "");
	return true;
}

static bool log_opened(const struct weft_running_subsys *was, const struct weft_subsys_config *is)
{
	weft_warn("%s: any host may connect from now on%s; only the %u host%s on its list could "
		  "before",
		  is->nqn,
		  is->access == WEFT_ALLOWED_ANY ? "" :
						   ", since only loopback is listened on and no "
						   "hosts are configured",
		  was->hosts.count, weft_plural(was->hosts.count));
	return true;
}

static bool log_closed(const struct weft_subsys_config *is)
{
	weft_info(
		"%s: only the %u host%s on its list may connect from now on; any host could before",
		is->nqn, is->hosts.count, weft_plural(is->hosts.count));
	return true;
}

static bool log_unknown(const struct weft_subsys_config *is)
{
	weft_info("%s: who may connect is as configured; the version that ran does not say who "
		  "could before",
		  is->nqn);
	return true;
}

static bool log_access_change(const struct weft_running_subsys *was,
			      const struct weft_subsys_config *is)
{
	bool was_open = was->access == WEFT_ALLOWED_ANY;
	bool is_open = is->access != WEFT_ALLOWED_LISTED;

	if (was->access == WEFT_ALLOWED_DEFAULT)
		return log_unknown(is);
	if (was_open && is_open)
		return false;
	if (is_open)
		return log_opened(was, is);
	return was_open ? log_closed(is) : log_list_change(was, is);
}

void weft_takeover_apply_access(struct weft_daemon *d, const struct weft_running_config *running)
{
	const struct weft_running_subsys *was = running->subsystems.at;

	for (unsigned i = 0; i < running->subsystems.count; i++) {
		const struct weft_subsys_config *is = weft_config_subsys(d->config, was[i].nqn);

		assert(is); /* weft_takeover_check_config() */
		if (log_access_change(&was[i], is))
			weft_subsys_hosts_changed(weft_subsys_find(d->target, was[i].nqn));
	}
}
