/* methods_ns.c - namespace-add, namespace-resize, namespace-remove. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"
#include "reactor/offload.h"

/* Warnings about @backend, a SPEC. */
static json_t *warn_backend(const char *backend)
{
	json_t *warnings = json_array();
	struct weft_spec spec;

	if (!weft_spec_parse(backend, &spec, NULL))
		weft_warn_spec(warnings, &spec);
	return warnings;
}

/* --- namespace-add ---------------------------------------------------------------------------- */

static int check_uuid(struct weft_daemon *d, const char *uuid, struct weft_err *err)
{
	char who[WEFT_NQN_MAX + 32];

	if (!uuid[0] || !weft_daemon_uuid_is_taken(d, uuid, who, sizeof(who)))
		return 0;
	return weft_fail(err, -EEXIST, "uuid: %s is that of %s already", uuid, who);
}

/* Runs before the storage is opened and again after it: other calls were served meanwhile. */
static int check_add(struct weft_daemon *d, struct weft_ns_add_params *p, struct weft_subsys **s,
		     struct weft_err *err)
{
	int rc = weft_daemon_find_subsys(d, p->nqn, s, err);

	if (!rc)
		rc = weft_config_ns_check_path(&p->ns, err);
	return rc < 0 ? rc : check_uuid(d, p->ns.uuid, err);
}

struct ns_add {
	struct weft_rpc_call *call;
	struct weft_ns_add_params params;
	struct weft_offload offload;
	int rc; /* the answer, when the storage is closed again */
	struct weft_err err;
};

static void fail_add(struct ns_add *ns_add)
{
	assert(ns_add->rc < 0 && !ns_add->params.ns.be);
	weft_rpc_fail(ns_add->call, ns_add->rc, &ns_add->err);
	free(ns_add);
}

static int ns_add_close_storage(struct weft_offload *offload)
{
	weft_ns_config_free(&container_of(offload, struct ns_add, offload)->params.ns);
	return 0;
}

static void ns_add_storage_closed(struct weft_offload *offload, int rc)
{
	(void)rc;
	fail_add(container_of(offload, struct ns_add, offload));
}

static int publish_ns(struct ns_add *ns_add)
{
	struct weft_daemon *d = ns_add->call->rpc->daemon;
	struct weft_ns_add_params *p = &ns_add->params;
	struct weft_subsys *s;
	int rc;

	assert(p->ns.be);
	if (d->stopping)
		return weft_fail(&ns_add->err, -ECANCELED, "the target stops");
	rc = check_add(d, p, &s, &ns_add->err);
	if (!rc)
		rc = weft_config_ns_apply(s, &p->ns, &ns_add->err);
	if (!rc)
		weft_subsys_keep_storage(s);
	return rc;
}

static void answer_add(struct ns_add *ns_add)
{
	_cleanup_(weft_freep) struct ns_add *gone = ns_add;
	struct weft_daemon *d = ns_add->call->rpc->daemon;
	struct weft_ns_add_params *p = &ns_add->params;
	struct weft_target_ns_info info;
	json_t *warnings;

	assert(!p->ns.be); /* it is the target's */
	weft_daemon_log_ns(d, p->nqn, p->ns.nsid);
	weft_daemon_find_ns(d, p->nqn, p->ns.nsid, &info);
	warnings = warn_backend(info.backend);
	weft_warn_members_ns(warnings, d, p->nqn, p->ns.nsid, "added");
	weft_rpc_result_warned(ns_add->call,
			       json_pack("{s:I, s:s}", "nsid", (json_int_t)p->ns.nsid, "uuid",
					 info.uuid),
			       warnings);
}

static int ns_add_open_storage(struct weft_offload *offload)
{
	struct ns_add *ns_add = container_of(offload, struct ns_add, offload);

	return weft_config_ns_open(&ns_add->params.ns, false, &ns_add->err);
}

static void ns_add_storage_opened(struct weft_offload *offload, int rc)
{
	struct ns_add *ns_add = container_of(offload, struct ns_add, offload);
	struct weft_daemon *d = ns_add->call->rpc->daemon;

	assert_on(d->control_reactor);
	ns_add->rc = rc < 0 ? rc : publish_ns(ns_add);
	if (!ns_add->rc)
		answer_add(ns_add);
	else if (ns_add->params.ns.be)
		weft_offload_start(&ns_add->offload, d->control_reactor, ns_add_close_storage,
				   ns_add_storage_closed);
	else
		fail_add(ns_add);
}

/* Opening or creating a file takes as long as the file system does, so it is offloaded. */
void weft_method_ns_add(struct weft_rpc_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	struct weft_ns_add_params *p = params;
	struct ns_add *ns_add = NULL;
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc = check_add(d, p, &s, &err);

	if (!rc) {
		ns_add = calloc(1, sizeof(*ns_add));
		rc = ns_add ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		weft_rpc_fail(call, rc, &err);
		return;
	}
	p->ns.spec.node = weft_subsys_node(s);
	ns_add->call = call;
	ns_add->params = *p;
	*p = (struct weft_ns_add_params){ 0 };
	weft_offload_start(&ns_add->offload, d->control_reactor, ns_add_open_storage,
			   ns_add_storage_opened);
}

/* --- namespace-resize ------------------------------------------------------------------------- */

struct ns_resize {
	struct weft_rpc_call *call;
	struct weft_ns_params params;
};

static void on_resized(void *arg, int rc, const struct weft_err *err)
{
	_cleanup_(weft_freep) struct ns_resize *ns_resize = arg;
	struct weft_ns_params *p = &ns_resize->params;
	struct weft_daemon *d = ns_resize->call->rpc->daemon;
	struct weft_target_ns_info info;
	json_t *warnings;

	if (rc < 0) {
		weft_rpc_fail(ns_resize->call, rc, err);
		return;
	}
	weft_daemon_log_ns(d, p->nqn, p->nsid);
	if (!weft_daemon_find_ns(d, p->nqn, p->nsid, &info))
		info.backend = "";
	warnings = warn_backend(info.backend);
	weft_warn_size(warnings, d, p->nqn, p->nsid, p->size);
	weft_warn_members_ns(warnings, d, p->nqn, p->nsid, "resized");
	weft_rpc_result_warned(ns_resize->call,
			       json_pack("{s:I, s:I}", "nsid", (json_int_t)p->nsid, "size",
					 (json_int_t)p->size),
			       warnings);
}

static int start_resize(struct weft_rpc_call *call, struct weft_ns_params *p, struct weft_err *err)
{
	struct ns_resize *ns_resize;
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(call->rpc->daemon, p->nqn, &s, err);
	if (rc < 0)
		return rc;
	ns_resize = malloc(sizeof(*ns_resize));
	if (!ns_resize)
		return -ENOMEM;
	*ns_resize = (struct ns_resize){ call, *p };
	rc = weft_ns_resize(s, p->nsid, p->size, p->shrink, on_resized, ns_resize, err);
	if (rc < 0)
		free(ns_resize);
	return rc;
}

void weft_method_ns_resize(struct weft_rpc_call *call, void *params)
{
	struct weft_err err = { "" };
	int rc = start_resize(call, params, &err);

	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
}

/* --- namespace-remove ------------------------------------------------------------------------- */

struct ns_remove {
	struct weft_rpc_call *call;
	struct weft_ns_params params;
};

static void on_removed(void *arg)
{
	_cleanup_(weft_freep) struct ns_remove *ns_remove = arg;
	struct weft_ns_params *p = &ns_remove->params;
	json_t *warnings = json_array();

	weft_warn_members_ns(warnings, ns_remove->call->rpc->daemon, p->nqn, p->nsid, "removed");
	weft_rpc_result_warned(ns_remove->call, json_object(), warnings);
}

static int start_remove(struct weft_rpc_call *call, struct weft_ns_params *p, struct weft_err *err)
{
	struct ns_remove *ns_remove;
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(call->rpc->daemon, p->nqn, &s, err);
	if (rc < 0)
		return rc;
	ns_remove = malloc(sizeof(*ns_remove));
	if (!ns_remove)
		return -ENOMEM;
	*ns_remove = (struct ns_remove){ call, *p };
	rc = weft_ns_remove(s, p->nsid, on_removed, ns_remove, err);
	if (rc < 0)
		free(ns_remove);
	return rc;
}

void weft_method_ns_remove(struct weft_rpc_call *call, void *params)
{
	struct weft_ns_params *p = params;
	struct weft_err err = { "" };
	int rc = start_remove(call, p, &err);

	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
	else
		weft_info("%s namespace %u: removed", p->nqn, p->nsid);
}
