/* methods_listener.c - listener-add and listener-remove. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

/* A subsystem that any host may use only because it is on loopback must not become reachable. */
static int check_listener_exposure(struct weft_daemon *d, const struct weft_uri *uri,
				   struct weft_err *err)
{
	void *first = json_object_iter(d->open_by_default);
	char text[WEFT_URI_MAX];

	if (weft_addr_is_loopback(&uri->addr) || !first)
		return 0;
	weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
	return weft_fail(err, -EPERM,
			 "%s is not loopback, and any host may use %s only because all other "
			 "listeners are; host-allow those that may use it first",
			 text, json_object_iter_key(first));
}

static bool has_text(json_t *list, const char *text)
{
	json_t *item;
	size_t index;

	json_array_foreach(list, index, item) {
		if (!strcmp(json_string_value(item), text))
			return true;
	}
	return false;
}

static int check_listener_free(json_t *listeners, const struct weft_uri *uri, struct weft_err *err)
{
	char text[WEFT_URI_MAX];

	weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
	if (!has_text(listeners, text))
		return 0;
	return weft_fail(err, -EEXIST, "%s: this target listens there already", text);
}

struct new_listener {
	json_t *before;
	json_t *found;
};

static void match_new_listener(void *arg, const char *uri, uint16_t portid)
{
	struct new_listener *search = arg;

	if (!search->found && !has_text(search->before, uri))
		search->found = json_pack("{s:s, s:i}", "listen", uri, "portid", portid);
}

/* The listener that is not in @before: it has a real port in place of port 0, and a port id. */
static json_t *find_new_listener(struct weft_daemon *d, json_t *before)
{
	const struct weft_target_visitor visitor = { .listener = match_new_listener };
	struct new_listener search = { .before = before };

	weft_target_visit(d->target, &visitor, &search);
	return search.found ? search.found : json_object();
}

void weft_method_listener_add(struct weft_rpc_call *call, void *params)
{
	const struct weft_listener_params *p = params;
	struct weft_daemon *d = call->rpc->daemon;
	json_auto_t *before = weft_daemon_list_listeners(d);
	struct weft_err err = { "" };
	json_t *added;
	int rc;

	rc = check_listener_free(before, &p->uri, &err);
	if (!rc)
		rc = check_listener_exposure(d, &p->uri, &err);
	if (!rc)
		rc = weft_listener_add(d->target, &p->uri, &err);
	if (rc < 0) {
		weft_rpc_fail(call, rc, &err);
		return;
	}
	added = find_new_listener(d, before);
	weft_info("listening on %s", json_string_value(json_object_get(added, "listen")));
	weft_rpc_result(call, added);
}

static json_t *warn_no_listener(struct weft_daemon *d)
{
	json_auto_t *listeners = weft_daemon_list_listeners(d);
	json_t *warnings = json_array();

	if (!json_array_size(listeners))
		json_array_append_new(warnings,
				      json_string("no listener is left: no host can connect until "
						  "listener-add; connections that are there stay"));
	return warnings;
}

void weft_method_listener_remove(struct weft_rpc_call *call, void *params)
{
	const struct weft_listener_params *p = params;
	struct weft_daemon *d = call->rpc->daemon;
	struct weft_err err = { "" };
	char text[WEFT_URI_MAX];
	int rc = weft_listener_remove(d->target, &p->uri, &err);

	if (rc < 0) {
		weft_rpc_fail(call, rc, &err);
		return;
	}
	weft_uri_format(p->uri.trtype, &p->uri.addr, text, sizeof(text));
	weft_info("no longer listening on %s", text);
	weft_rpc_result_warned(call, json_object(), warn_no_listener(d));
}
