/* ana_rules.c - ANA rules: a list of them, and which one decides for a controller.
 *
 *   for one host through one port  >  one host  >  one port  >  everybody  >  no rule: optimized
 *
 * A group that another member of the cluster serves is inaccessible here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

/* --- a list of rules -------------------------------------------------------------------------- */

bool weft_ana_rule_same(const struct weft_ana_rule *a, const struct weft_ana_rule *b)
{
	return a->group == b->group && a->portid == b->portid && !strcmp(a->hostnqn, b->hostnqn);
}

static const struct weft_ana_rule *ana_rule_find(const struct weft_ana_rule *rules, unsigned count,
						 const struct weft_ana_rule *like)
{
	for (unsigned i = 0; i < count; i++)
		if (weft_ana_rule_same(&rules[i], like))
			return &rules[i];
	return NULL;
}

static int check_rule(const struct weft_ana_rule *rule, struct weft_err *err)
{
	if (!rule->group || rule->group > WEFT_ANA_GROUP_MAX)
		return weft_fail(err, -EINVAL, "ANA group %u: expected 1 to %d", rule->group,
				 WEFT_ANA_GROUP_MAX);
	if (rule->state >= WEFT_ANA_STATES)
		return weft_fail(err, -EINVAL, "ANA group %u: no such state", rule->group);
	return rule->hostnqn[0] ? weft_nqn_check(rule->hostnqn, err) : 0;
}

int tgt_ana_rules_check(const struct weft_ana_rule *rules, unsigned count, struct weft_err *err)
{
	int rc = 0;

	if (count > TGT_ANA_RULES_MAX)
		return weft_fail(err, -EINVAL, "%u ANA rules: expected at most %d", count,
				 TGT_ANA_RULES_MAX);
	for (unsigned i = 0; i < count && !rc; i++) {
		rc = check_rule(&rules[i], err);
		if (!rc && ana_rule_find(rules, i, &rules[i]))
			rc = weft_fail(err, -EINVAL,
				       "ANA group %u: two rules for the same port and host",
				       rules[i].group);
	}
	return rc;
}

struct ana_rules *tgt_ana_rules_with(const struct ana_rules *old, const struct weft_ana_rule *rules,
				     unsigned count)
{
	unsigned nold = old ? old->count : 0;
	struct ana_rules *all = malloc(sizeof(*all) + (nold + count) * sizeof(all->at[0]));

	if (!all)
		return NULL;
	all->count = 0;
	memset(all->elsewhere, 0, sizeof(all->elsewhere));
	for (unsigned i = 0; i < nold; i++)
		if (!ana_rule_find(rules, count, &old->at[i]))
			all->at[all->count++] = old->at[i];
	for (unsigned i = 0; i < count; i++)
		all->at[all->count++] = rules[i];
	return all;
}

/* --- which rule decides ----------------------------------------------------------------------- */

static bool rule_applies(const struct weft_ana_rule *rule, uint16_t portid, const char *hostnqn)
{
	return (!rule->portid || rule->portid == portid) &&
	       (!rule->hostnqn[0] || !strcmp(rule->hostnqn, hostnqn));
}

/* Two rules for one controller and one group never have the same. */
static uint8_t rule_specificity(const struct weft_ana_rule *rule)
{
	return (uint8_t)(1 + (rule->portid ? 1 : 0) + (rule->hostnqn[0] ? 2 : 0));
}

void tgt_ana_evaluate(const struct ana_rules *rules, uint16_t portid, const char *hostnqn,
		      uint8_t states[WEFT_ANA_GROUP_MAX])
{
	uint8_t weights[WEFT_ANA_GROUP_MAX] = { 0 };

	memset(states, WEFT_ANA_OPTIMIZED, WEFT_ANA_GROUP_MAX);
	for (unsigned i = 0; i < rules->count; i++) {
		const struct weft_ana_rule *rule = &rules->at[i];

		assert(rule->group - 1 < WEFT_ANA_GROUP_MAX && rule->state < WEFT_ANA_STATES);
		if (!rule_applies(rule, portid, hostnqn) ||
		    rule_specificity(rule) < weights[rule->group - 1])
			continue;
		weights[rule->group - 1] = rule_specificity(rule);
		states[rule->group - 1] = (uint8_t)rule->state;
	}
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (rules->elsewhere[i] && states[i] != WEFT_ANA_PERSISTENT_LOSS)
			states[i] = WEFT_ANA_INACCESSIBLE;
}
