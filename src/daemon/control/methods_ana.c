/* methods_ana.c - ana-set: change ANA rules while hosts do I/O, all that are given at once or
 * none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

struct ana_set {
	struct weft_rpc_call *call;
	char nqn[WEFT_NQN_MAX + 1];
	unsigned count;
	bool named[WEFT_ANA_GROUP_MAX]; /* by group - 1: a rule that was given is for it */
	json_t *warnings;
};

/* --- groups that no port gives access to ------------------------------------------------------ */

struct access_search {
	const char *nqn;
	bool here;     /* the subsystem being walked is the one */
	unsigned node; /* of a cluster, 0: we are alone */
	/* By group - 1. */
	bool served[WEFT_ANA_GROUP_MAX]; /* here, by a port, and not by another member */
	bool accessible[WEFT_ANA_GROUP_MAX];
	unsigned owner[WEFT_ANA_GROUP_MAX];
};

static bool gives_access(enum weft_ana_state state)
{
	return state == WEFT_ANA_OPTIMIZED || state == WEFT_ANA_NON_OPTIMIZED;
}

static void enter_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct access_search *search = arg;

	search->here = !strcmp(info->nqn, search->nqn);
	if (search->here)
		search->node = info->node;
}

static void note_owner(void *arg, const struct weft_group_info *info)
{
	struct access_search *search = arg;

	if (search->here)
		search->owner[info->group - 1] = info->owner;
}

/* Whoever lets a single host in has thought of the others. */
static void note_rule(void *arg, const struct weft_ana_rule *rule)
{
	struct access_search *search = arg;

	if (search->here && rule->hostnqn[0] && gives_access(rule->state))
		search->accessible[rule->group - 1] = true;
}

static void note_port(void *arg, uint16_t portid, uint32_t group, enum weft_ana_state state)
{
	struct access_search *search = arg;

	(void)portid;
	if (!search->here)
		return;
	search->served[group - 1] = search->owner[group - 1] == search->node;
	if (gives_access(state))
		search->accessible[group - 1] = true;
}

static void warn_no_access(const struct ana_set *ana_set)
{
	const struct weft_target_visitor visitor = { .subsys = enter_subsys,
						     .group = note_owner,
						     .ana_rule = note_rule,
						     .port_ana = note_port };
	const struct weft_daemon *d = ana_set->call->rpc->daemon;
	struct access_search search = { .nqn = ana_set->nqn };

	weft_target_visit(d->target, &visitor, &search);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (ana_set->named[i] && search.served[i] && !search.accessible[i])
			json_array_append_new(
				ana_set->warnings,
				json_sprintf("%s: no port gives access to group %u now, so no host "
					     "can use its namespaces; a rule that makes it "
					     "optimized or non-optimized ends that",
					     ana_set->nqn, i + 1));
}

/* --- ana-set ---------------------------------------------------------------------------------- */

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
	warn_no_access(ana_set);
	weft_rpc_result_warned(ana_set->call, json_object(), ana_set->warnings);
}

static int start_ana_set(struct weft_rpc_call *call, struct weft_ana_params *p,
			 struct weft_err *err)
{
	const struct weft_ana_rule *rule = p->rules.at;
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
	for (unsigned i = 0; i < p->rules.count; i++)
		if (rule[i].group - 1 < WEFT_ANA_GROUP_MAX) /* it is checked by weft_ana_set() */
			ana_set->named[rule[i].group - 1] = true;
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
