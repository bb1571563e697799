/* subsys_add.c - subsystem-add: add a subsystem while others are served.
 *
 *   check ─▶ open its storage ─▶ join ─▶ check again ─▶ publish ─▶ answer
 *               └─ offloaded ───┴───────────┴─ refused, or we stop ─▶ undo ─▶ answer
 *
 * Opening files takes as long as their file systems do, and a subsystem whose state is in a file
 * may have to wait before it has joined (store/join.c). Until then nobody can see it: hosts and
 * other calls are served meanwhile. They may change things that it conflicts with, so it is checked
 * again.
 *
 * A target that stops cancels it. A takeover is refused while any call is under way
 * (takeover/export.c).
 *
 * Invariant: the call is answered when the whole subsystem is there, or nothing of it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"
#include "reactor/offload.h"

struct subsys_add {
	struct weft_list link;
	struct weft_rpc_call *call;
	struct weft_subsys_config config;
	struct weft_offload offload;        /* opens its storage; closes it when it is undone */
	struct weft_store_joining *joining; /* NULL: it does not join, or has joined */
	int rc;                             /* the answer, when it is undone */
	struct weft_err err;
};

/* --- checks ----------------------------------------------------------------------------------- */

static int check_namespaces(struct weft_daemon *d, const struct weft_subsys_config *subsys,
			    struct weft_err *err)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;
	char who[WEFT_NQN_MAX + 32];

	for (unsigned i = 0; i < subsys->namespaces.count; i++) {
		if (weft_config_ns_check_path(&ns[i], err) < 0)
			return -EINVAL;
		if (ns[i].uuid[0] && weft_daemon_uuid_is_taken(d, ns[i].uuid, who, sizeof(who)))
			return weft_fail(err, -EEXIST,
					 "namespaces[%u].uuid: %s is that of %s already", i,
					 ns[i].uuid, who);
	}
	return 0;
}

static int check_new_subsys(struct weft_daemon *d, const struct weft_subsys_config *subsys,
			    struct weft_err *err)
{
	const struct weft_doc no_places = { NULL };
	char exposed[WEFT_URI_MAX];
	int rc;

	if (weft_subsys_find(d->target, subsys->nqn))
		return weft_fail(err, -EEXIST, "nqn: there is a subsystem %s already", subsys->nqn);
	rc = weft_config_subsys_check_path(subsys, err);
	if (rc < 0)
		return rc;
	weft_daemon_exposed_listener(d, exposed);
	rc = weft_config_check_allowed(subsys, exposed[0] ? exposed : NULL, &no_places, "", err);
	return rc < 0 ? rc : check_namespaces(d, subsys, err);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void subsys_add_free(struct subsys_add *adding)
{
	assert(!adding->joining);
	weft_list_remove(&adding->link);
	weft_subsys_config_free(&adding->config);
	free(adding);
}

static int subsys_add_close_storage(struct weft_offload *offload)
{
	weft_subsys_config_free(&container_of(offload, struct subsys_add, offload)->config);
	return 0;
}

static void subsys_add_storage_closed(struct weft_offload *offload, int rc)
{
	struct subsys_add *adding = container_of(offload, struct subsys_add, offload);

	(void)rc;
	assert(adding->rc < 0);
	weft_rpc_fail(adding->call, adding->rc, &adding->err);
	subsys_add_free(adding);
}

/* Storage that the target did not get is still open. */
static void on_add_undone(void *arg)
{
	struct subsys_add *adding = arg;
	struct weft_daemon *d = adding->call->rpc->daemon;

	weft_offload_start(&adding->offload, d->control_reactor, subsys_add_close_storage,
			   subsys_add_storage_closed);
}

static void undo_add(struct subsys_add *adding, struct weft_subsys *s, struct weft_store *store)
{
	assert(adding->rc < 0 && !adding->joining);
	if (s)
		weft_subsys_remove(s, on_add_undone, adding);
	else if (store)
		weft_store_close(store, on_add_undone, adding);
	else
		on_add_undone(adding);
}

static void publish_subsys(struct subsys_add *adding, struct weft_store *store)
{
	struct weft_daemon *d = adding->call->rpc->daemon;
	struct weft_subsys_config *config = &adding->config;
	json_auto_t *warnings = json_array();
	struct weft_subsys *s = NULL;

	assert_on(d->control_reactor);
	assert(!adding->joining);
	adding->rc = check_new_subsys(d, config, &adding->err);
	if (!adding->rc)
		adding->rc = weft_config_subsys_apply(d, config, store, &s, &adding->err);
	if (adding->rc < 0) {
		undo_add(adding, s, store);
		return;
	}
	weft_subsys_keep_storage(s);
	weft_info("%s: added", config->nqn);
	weft_daemon_log_subsys(d, config->nqn);
	weft_warn_subsys(warnings, config);
	weft_daemon_warn_ana(d, config->nqn, &config->ana, warnings);
	weft_rpc_result_warned(adding->call, json_pack("{s:s}", "nqn", config->nqn),
			       take_ptr(&warnings));
	subsys_add_free(adding);
}

static void on_joined(void *arg, int rc, struct weft_store *store, const struct weft_err *err)
{
	struct subsys_add *adding = arg;

	assert(adding->joining && !store == (rc < 0));
	adding->joining = NULL;
	adding->rc = rc;
	if (!rc) {
		publish_subsys(adding, store);
		return;
	}
	weft_fail(&adding->err, rc, "%s", err->text);
	on_add_undone(adding);
}

/* --- the call --------------------------------------------------------------------------------- */

static int join_store(struct subsys_add *adding)
{
	struct weft_daemon *d = adding->call->rpc->daemon;
	const struct weft_store_options options = weft_config_store_options(d, &adding->config);

	assert(!adding->joining);
	if (d->stopping)
		return weft_fail(&adding->err, -ECANCELED, "the target stops");
	if (!options.spec[0])
		return 0;
	return weft_store_join(&adding->joining, &options, on_joined, adding, &adding->err);
}

static int subsys_add_open_storage(struct weft_offload *offload)
{
	struct subsys_add *adding = container_of(offload, struct subsys_add, offload);

	return weft_config_subsys_open(&adding->config, false, &adding->err);
}

static void subsys_add_storage_opened(struct weft_offload *offload, int rc)
{
	struct subsys_add *adding = container_of(offload, struct subsys_add, offload);

	adding->rc = rc < 0 ? rc : join_store(adding);
	if (adding->rc < 0)
		on_add_undone(adding);
	else if (!adding->joining)
		publish_subsys(adding, NULL);
}

void weft_method_subsys_add(struct weft_rpc_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	struct weft_subsys_config *config = params;
	struct subsys_add *adding = calloc(1, sizeof(*adding));

	if (!adding) {
		weft_rpc_fail(call, -ENOMEM, &(struct weft_err){ "out of memory" });
		return;
	}
	adding->call = call;
	adding->config = *config;
	*config = (struct weft_subsys_config){ 0 };
	weft_list_push(&d->adds, &adding->link);
	adding->rc = check_new_subsys(d, &adding->config, &adding->err);
	if (adding->rc < 0)
		on_add_undone(adding);
	else
		weft_offload_start(&adding->offload, d->control_reactor, subsys_add_open_storage,
				   subsys_add_storage_opened);
}

void weft_daemon_cancel_adds(struct weft_daemon *d)
{
	struct subsys_add *adding;

	weft_list_for_each(adding, &d->adds, link)
		if (adding->joining)
			weft_store_join_cancel(adding->joining);
}
