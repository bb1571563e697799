/* methods_ns.c - namespaces: add, resize, remove. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/methods.h"
#include "daemon/state.h"

/* --- namespace-add ------------------------------------------------------------------------- */

static int check_uuid(struct weft_daemon *d, const char *uuid, struct weft_err *err)
{
	char who[WEFT_NQN_MAX + 32];

	if (!uuid[0] || !weft_look_uuid_taken(d, uuid, who, sizeof(who)))
		return 0;
	return weft_fail(err, -EEXIST, "uuid: %s is that of %s already", uuid, who);
}

static int add(struct weft_daemon *d, struct weft_ns_add_params *p, struct weft_err *err)
{
	struct weft_subsys *s;
	int rc;

	rc = weft_look_subsys(d, p->nqn, &s, err);
	if (!rc)
		rc = check_uuid(d, p->ns.uuid, err);
	if (!rc)
		rc = weft_ns_open(&p->ns, err);
	return rc < 0 ? rc : weft_ns_apply(s, &p->ns, err);
}

void weft_method_ns_add(struct weft_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	struct weft_ns_add_params *p = params;
	struct weft_err err = { "" };
	char uuid[37];
	int rc;

	rc = add(d, p, &err);
	if (rc < 0) {
		weft_call_fail(call, rc, &err);
		return;
	}
	weft_look_uuid(d, p->nqn, p->ns.nsid, uuid);
	weft_call_result(call,
			 json_pack("{s:I, s:s}", "nsid", (json_int_t)p->ns.nsid, "uuid", uuid));
}

/* --- namespace-resize ---------------------------------------------------------------------- */

struct resize {
	struct weft_call *call;
	uint32_t nsid;
	uint64_t size;
};

static void on_resized(void *arg, int rc, const struct weft_err *err)
{
	_cleanup_(weft_freep) struct resize *resize = arg;

	if (rc < 0)
		weft_call_fail(resize->call, rc, err);
	else
		weft_call_result(resize->call,
				 json_pack("{s:I, s:I}", "nsid", (json_int_t)resize->nsid, "size",
					   (json_int_t)resize->size));
}

static int start_resize(struct weft_call *call, struct weft_ns_params *p, struct weft_err *err)
{
	struct resize *resize;
	struct weft_subsys *s;
	int rc;

	rc = weft_look_subsys(call->rpc->daemon, p->nqn, &s, err);
	if (rc < 0)
		return rc;
	resize = malloc(sizeof(*resize));
	if (!resize)
		return -ENOMEM;
	*resize = (struct resize){ call, p->nsid, p->size };
	rc = weft_ns_resize(s, p->nsid, p->size, on_resized, resize, err);
	if (rc < 0)
		free(resize);
	return rc;
}

void weft_method_ns_resize(struct weft_call *call, void *params)
{
	struct weft_err err = { "" };
	int rc = start_resize(call, params, &err);

	if (rc < 0)
		weft_call_fail(call, rc, &err);
}

/* --- namespace-remove ---------------------------------------------------------------------- */

static void on_removed(void *arg)
{
	weft_call_result(arg, json_object());
}

void weft_method_ns_remove(struct weft_call *call, void *params)
{
	struct weft_ns_params *p = params;
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc;

	rc = weft_look_subsys(call->rpc->daemon, p->nqn, &s, &err);
	if (!rc)
		rc = weft_ns_remove(s, p->nsid, on_removed, call, &err);
	if (rc < 0)
		weft_call_fail(call, rc, &err);
}
