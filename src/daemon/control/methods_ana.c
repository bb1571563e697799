/* methods_ana.c - ana-set: change ANA rules while hosts do I/O, all that are given at once or
 * none. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

struct ana_set {
	struct weft_rpc_call *call;
	char nqn[WEFT_NQN_MAX + 1];
	unsigned count;
	json_t *warnings;
};

static void on_ana_set(void *arg, int rc, const struct weft_err *err)
{
	_cleanup_(weft_freep) struct ana_set *ana_set = arg;

	if (rc < 0) {
		json_decref(ana_set->warnings);
		weft_rpc_fail(ana_set->call, rc, err);
		return;
	}
	weft_info("%s: %u ANA rule%s set", ana_set->nqn, ana_set->count,
		  weft_plural(ana_set->count));
	weft_rpc_result_warned(ana_set->call, json_object(), ana_set->warnings);
}

static int start_ana_set(struct weft_rpc_call *call, struct weft_ana_params *p,
			 struct weft_err *err)
{
	struct ana_set *ana_set;
	struct weft_subsys *s;
	int rc;

	rc = weft_daemon_find_subsys(call->rpc->daemon, p->nqn, &s, err);
	if (rc < 0)
		return rc;
	ana_set = calloc(1, sizeof(*ana_set));
	if (!ana_set)
		return -ENOMEM;
	*ana_set = (struct ana_set){ .call = call, .count = p->rules.count };
	snprintf(ana_set->nqn, sizeof(ana_set->nqn), "%s", p->nqn);
	ana_set->warnings = json_array();
	weft_daemon_warn_ana(call->rpc->daemon, p->nqn, &p->rules, ana_set->warnings);
	rc = weft_ana_set(s, p->rules.at, p->rules.count, p->replace, on_ana_set, ana_set, err);
	if (rc < 0) {
		json_decref(ana_set->warnings);
		free(ana_set);
	}
	return rc;
}

void weft_method_ana_set(struct weft_rpc_call *call, void *params)
{
	struct weft_err err = { "" };
	int rc = start_ana_set(call, params, &err);

	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
}
