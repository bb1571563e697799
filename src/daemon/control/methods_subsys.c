/* methods_subsys.c - subsystem-remove, host-allow, host-refuse: subsystems and their allowed
 * hosts. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

static void on_subsys_removed(void *arg)
{
	weft_rpc_result(arg, json_object());
}

/* --- subsystem-remove ------------------------------------------------------------------------- */

void weft_method_subsys_remove(struct weft_rpc_call *call, void *params)
{
	struct weft_subsys_params *p = params;
	struct weft_daemon *d = call->rpc->daemon;
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(d, p->nqn, &s, &err);
	if (rc < 0) {
		weft_rpc_fail(call, rc, &err);
		return;
	}
	json_object_del(d->open_by_default, p->nqn);
	weft_info("%s: removed", p->nqn);
	weft_subsys_remove(s, on_subsys_removed, call);
}

/* --- hosts: a list, any, or any while only loopback is listened on ---------------------------- */

static bool is_any(const struct weft_host_params *p)
{
	return !strcmp(p->host, "any");
}

/* "any" was configured; it is not the default. */
static bool any_host_configured(struct weft_daemon *d, const char *nqn)
{
	return weft_daemon_allows_any_host(d, nqn) && !json_object_get(d->open_by_default, nqn);
}

static int fail_any(const char *nqn, struct weft_err *err)
{
	return weft_fail(err, -EPERM,
			 "any host may use %s already; host-refuse host=any makes its list count",
			 nqn);
}

static void warn_closed(json_t *warnings, struct weft_daemon *d, const struct weft_host_params *p)
{
	unsigned others = weft_daemon_count_other_ctrls(d, p->nqn, p->host);

	json_array_append_new(
		warnings,
		json_sprintf("%s: any host could connect, and only those listed may from now on; %u "
			     "controller%s of others %s disconnected",
			     p->nqn, others, weft_plural(others), others == 1 ? "was" : "were"));
}

static void warn_open(json_t *warnings, struct weft_daemon *d, const struct weft_host_params *p)
{
	bool was_open = weft_daemon_allows_any_host(d, p->nqn);

	json_array_append_new(
		warnings,
		json_sprintf("%s: any host may connect from now on%s; host-refuse host=any takes "
			     "that back",
			     p->nqn,
			     was_open ? ", also where not only loopback is listened on" : ""));
}

static void warn_nobody(json_t *warnings, struct weft_daemon *d, const struct weft_host_params *p)
{
	if (!weft_daemon_count_hosts(d, p->nqn))
		json_array_append_new(
			warnings,
			json_sprintf("%s: no host may connect: its list is empty; host-allow "
				     "adds one",
				     p->nqn));
}

/* A subsystem that any host could use only because it is on loopback has a list from now on. */
static int allow_host(struct weft_daemon *d, struct weft_subsys *s, struct weft_host_params *p,
		      json_t *warnings, struct weft_err *err)
{
	int rc;

	if (any_host_configured(d, p->nqn))
		return fail_any(p->nqn, err);
	rc = is_any(p) ? 0 : weft_subsys_allow(s, p->host, err);
	if (rc < 0)
		return rc;
	if (is_any(p))
		warn_open(warnings, d, p);
	else if (weft_daemon_allows_any_host(d, p->nqn))
		warn_closed(warnings, d, p);
	if (!json_object_del(d->open_by_default, p->nqn) || is_any(p))
		weft_subsys_set_any_host(s, is_any(p));
	weft_info("%s: %s%s may connect", p->nqn, is_any(p) ? "any host" : "host ",
		  is_any(p) ? "" : p->host);
	return 0;
}

static int refuse_any(struct weft_daemon *d, struct weft_subsys *s, struct weft_host_params *p,
		      json_t *warnings, struct weft_err *err)
{
	if (!weft_daemon_allows_any_host(d, p->nqn))
		return weft_fail(err, -ENOENT, "only the hosts on its list may use %s already",
				 p->nqn);
	json_object_del(d->open_by_default, p->nqn);
	weft_subsys_set_any_host(s, false);
	weft_info("%s: only hosts on its list may connect", p->nqn);
	warn_nobody(warnings, d, p);
	return 0;
}

static int refuse_host(struct weft_daemon *d, struct weft_subsys *s, struct weft_host_params *p,
		       json_t *warnings, struct weft_err *err)
{
	int rc;

	if (is_any(p))
		return refuse_any(d, s, p, warnings, err);
	if (any_host_configured(d, p->nqn))
		return fail_any(p->nqn, err);
	if (json_object_get(d->open_by_default, p->nqn))
		return weft_fail(err, -EPERM,
				 "any host may use %s, because only loopback is listened on; "
				 "host-allow those that may, and the others may not",
				 p->nqn);
	rc = weft_subsys_refuse(s, p->host, err);
	if (rc < 0)
		return rc;
	weft_info("%s: host %s may no longer connect", p->nqn, p->host);
	warn_nobody(warnings, d, p);
	return 0;
}

static void change_allowed_hosts(struct weft_rpc_call *call, struct weft_host_params *p,
				 int (*change)(struct weft_daemon *d, struct weft_subsys *s,
					       struct weft_host_params *p, json_t *warnings,
					       struct weft_err *err))
{
	struct weft_daemon *d = call->rpc->daemon;
	json_auto_t *warnings = json_array();
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(d, p->nqn, &s, &err);
	if (!rc)
		rc = change(d, s, p, warnings, &err);
	if (!rc)
		weft_warn_members(warnings, d, p->nqn);
	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
	else
		weft_rpc_result_warned(call, json_object(), take_ptr(&warnings));
}

void weft_method_host_allow(struct weft_rpc_call *call, void *params)
{
	change_allowed_hosts(call, params, allow_host);
}

void weft_method_host_refuse(struct weft_rpc_call *call, void *params)
{
	change_allowed_hosts(call, params, refuse_host);
}
