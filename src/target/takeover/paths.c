/* paths.c - takeover of what hosts know of their paths: ANA states, controller instances,
 * Cross-Controller Resets.
 *
 * The ANA rules that run are exported, not those of the configuration: a group that was taken from
 * this target must not come back with a new process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/admin/admin.h"
#include "target/takeover/takeover.h"
#include "target/takeover/parts.h"

/* --- export ----------------------------------------------------------------------------------- */

static struct weft_takeover_entry *alloc_entries(struct weft_items *items, size_t count)
{
	items->at = calloc(count, sizeof(struct weft_takeover_entry));
	return items->at;
}

int tgt_paths_export_subsys(struct weft_subsys_state *state, const struct weft_subsys *s)
{
	const struct ana_rules *rules = s->ana.rules;
	struct weft_takeover_entry *changed = alloc_entries(&state->ana_changed,
							    WEFT_ANA_GROUP_MAX);

	assert(tgt_ana_is_idle(s)); /* or the rules would be those of the past */
	state->ana_count = s->ana.count;
	state->ana_rules.at = calloc(rules->count + 1, sizeof(rules->at[0]));
	if (!changed || !state->ana_rules.at)
		return -ENOMEM;
	memcpy(state->ana_rules.at, rules->at, rules->count * sizeof(rules->at[0]));
	state->ana_rules.count = rules->count;
	for (uint32_t i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (s->ana.changed[i])
			changed[state->ana_changed.count++] = (struct weft_takeover_entry){
				i + 1, 0, s->ana.changed[i]
			};
	return 0;
}

/* States that do not follow from the rules. */
static int export_ctrl_ana(struct weft_items *items, const struct tgt_ctrl *ctrl)
{
	uint8_t by_rules[WEFT_ANA_GROUP_MAX];
	struct weft_takeover_entry *to;
	unsigned count = 0;

	tgt_ana_evaluate(ctrl->subsys->ana.rules, ctrl->portid, ctrl->hostnqn, by_rules);
	for (uint32_t i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		count += ctrl->ana[i] != by_rules[i];
	to = alloc_entries(items, count + 1);
	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (ctrl->ana[i] != by_rules[i])
			to[items->count++] = (struct weft_takeover_entry){ i + 1, ctrl->ana[i], 0 };
	return 0;
}

int tgt_paths_export_ctrl(struct weft_ctrl_state *state, struct tgt_ctrl *ctrl)
{
	struct weft_takeover_entry *ccrs = alloc_entries(&state->ccrs, TGT_CCR_ENTRIES_MAX);

	if (!ccrs || export_ctrl_ana(&state->ana, ctrl) < 0)
		return -ENOMEM;
	state->portid = ctrl->portid;
	state->ciu = ctrl->ciu;
	state->cirn_low = (uint32_t)ctrl->cirn;
	state->cirn_high = (uint32_t)(ctrl->cirn >> 32);
	state->ccrs.count = tgt_ccr_export(ctrl, ccrs);
	return 0;
}

void tgt_paths_free_subsys_state(struct weft_subsys_state *state)
{
	free(state->ana_rules.at);
	free(state->ana_changed.at);
}

void tgt_paths_free_ctrl_state(struct weft_ctrl_state *state)
{
	free(state->ana.at);
	free(state->ccrs.at);
}

/* --- import ----------------------------------------------------------------------------------- */

static bool ana_group_is_valid(uint32_t group)
{
	return group && group <= WEFT_ANA_GROUP_MAX;
}

int tgt_paths_import_subsys(const struct weft_subsys_state *state, struct weft_subsys *s,
			    struct weft_err *err)
{
	const struct weft_takeover_entry *changed = state->ana_changed.at;
	struct ana_rules *rules;
	int rc = tgt_ana_rules_check(state->ana_rules.at, state->ana_rules.count, err);

	assert(tgt_ana_is_idle(s));
	if (rc < 0)
		return rc;
	rules = tgt_ana_rules_with(NULL, state->ana_rules.at, state->ana_rules.count);
	if (!rules)
		return -ENOMEM;
	free(s->ana.rules);
	s->ana.rules = rules;
	s->ana.count = state->ana_count;
	for (unsigned i = 0; i < state->ana_changed.count; i++)
		if (ana_group_is_valid(changed[i].id))
			s->ana.changed[changed[i].id - 1] = changed[i].count;
	return 0;
}

int tgt_paths_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl)
{
	const struct weft_takeover_entry *ana = state->ana.at, *ccrs = state->ccrs.at;
	int rc = 0;

	ctrl->portid = (uint16_t)state->portid;
	ctrl->ciu = (uint8_t)state->ciu;
	ctrl->cirn = (uint64_t)state->cirn_high << 32 | state->cirn_low;
	tgt_ana_ctrl_init(ctrl);
	for (unsigned i = 0; i < state->ana.count; i++) {
		if (!ana_group_is_valid(ana[i].id) || ana[i].value >= WEFT_ANA_STATES)
			return -EINVAL;
		atomic_store(&ctrl->ana[ana[i].id - 1], (uint8_t)ana[i].value);
	}
	if (state->ccrs.count > TGT_CCR_ENTRIES_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < state->ccrs.count && !rc; i++)
		rc = tgt_ccr_import(ctrl, &ccrs[i]);
	return rc;
}
