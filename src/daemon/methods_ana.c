/* methods_ana.c - ANA rules while hosts are at work: all that are given at once, or none. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/methods.h"
#include "daemon/state.h"

struct setting {
	struct weft_call *call;
	char nqn[WEFT_NQN_MAX + 1];
	unsigned count;
	json_t *warnings;
};

static void on_set(void *arg, int rc, const struct weft_err *err)
{
	_cleanup_(weft_freep) struct setting *setting = arg;

	if (rc < 0) {
		json_decref(setting->warnings);
		weft_call_fail(setting->call, rc, err);
		return;
	}
	weft_info("%s: %u ANA rule%s set", setting->nqn, setting->count,
		  weft_plural(setting->count));
	weft_call_warned(setting->call, json_object(), setting->warnings);
}

static int start(struct weft_call *call, struct weft_ana_params *p, struct weft_err *err)
{
	struct setting *setting;
	struct weft_subsys *s;
	int rc;

	rc = weft_look_subsys(call->rpc->daemon, p->nqn, &s, err);
	if (rc < 0)
		return rc;
	setting = calloc(1, sizeof(*setting));
	if (!setting)
		return -ENOMEM;
	*setting = (struct setting){ .call = call, .count = p->rules.count };
	snprintf(setting->nqn, sizeof(setting->nqn), "%s", p->nqn);
	setting->warnings = json_array();
	weft_look_ana(call->rpc->daemon, p->nqn, &p->rules, setting->warnings);
	rc = weft_ana_set(s, p->rules.at, p->rules.count, p->replace, on_set, setting, err);
	if (rc < 0) {
		json_decref(setting->warnings);
		free(setting);
	}
	return rc;
}

void weft_method_ana_set(struct weft_call *call, void *params)
{
	struct weft_err err = { "" };
	int rc = start(call, params, &err);

	if (rc < 0)
		weft_call_fail(call, rc, &err);
}
