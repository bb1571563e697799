/* methods_cluster.c - drain, undrain and move: which member of a cluster serves which groups.
 * Answered when it does. */
#include <errno.h>

#include "daemon/control/methods.h"
#include "daemon/internal.h"

static void on_cluster_done(void *arg, int rc, const struct weft_err *err)
{
	if (rc < 0)
		weft_rpc_fail(arg, rc, err);
	else
		weft_rpc_result(arg, json_object());
}

static void set_drain(struct weft_rpc_call *call, struct weft_subsys_params *p, bool away)
{
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(call->rpc->daemon, p->nqn, &s, &err);
	if (!rc)
		rc = weft_cluster_drain(s, away, on_cluster_done, call, &err);
	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
}

void weft_method_drain(struct weft_rpc_call *call, void *params)
{
	set_drain(call, params, true);
}

void weft_method_undrain(struct weft_rpc_call *call, void *params)
{
	set_drain(call, params, false);
}

/* A mistyped group would be answered as if something had moved. */
static int check_group(struct weft_daemon *d, const struct weft_move_params *p,
		       struct weft_err *err)
{
	if (!p->group || weft_daemon_has_ana_group(d, p->nqn, p->group))
		return 0;
	return weft_fail(err, -ENOENT, "group %u: no namespace of %s is in it here", p->group,
			 p->nqn);
}

void weft_method_move(struct weft_rpc_call *call, void *params)
{
	struct weft_move_params *p = params;
	struct weft_err err = { "" };
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(call->rpc->daemon, p->nqn, &s, &err);
	if (!rc)
		rc = check_group(call->rpc->daemon, p, &err);
	if (!rc)
		rc = weft_cluster_move(s, p->group, p->node, on_cluster_done, call, &err);
	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
}
