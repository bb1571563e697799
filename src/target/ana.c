/* ana.c - ANA states: which of the five a controller shows, and how commands are answered in each.
 *
 *   optimized, non-optimized     the command is carried out
 *   inaccessible                 Asymmetric Access Inaccessible
 *   persistent-loss              Asymmetric Access Persistent Loss
 *   change                       Asymmetric Access Transition
 *
 * None of these statuses has DNR: another path may do what this one does not. Identify and log
 * pages are answered in every state, features of a namespace are not (NVMe base 2.2, figure 589).
 *
 * Invariant: a controller shows what the rules say of it. Two exceptions: persistent loss does not
 * end while the controller lives (8.1.1.7), and "change" is shown while rules change. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

const char *const weft_ana_names[] = {
	[WEFT_ANA_OPTIMIZED] = "optimized",
	[WEFT_ANA_NON_OPTIMIZED] = "non-optimized",
	[WEFT_ANA_INACCESSIBLE] = "inaccessible",
	[WEFT_ANA_PERSISTENT_LOSS] = "persistent-loss",
	[WEFT_ANA_CHANGE] = "change",
	[WEFT_ANA_STATES] = NULL,
};

static const struct {
	uint8_t wire;
	uint16_t status;
} states[WEFT_ANA_STATES] = {
	[WEFT_ANA_OPTIMIZED] = { NVME_ANA_STATE_OPTIMIZED, 0 },
	[WEFT_ANA_NON_OPTIMIZED] = { NVME_ANA_STATE_NONOPTIMIZED, 0 },
	[WEFT_ANA_INACCESSIBLE] = { NVME_ANA_STATE_INACCESSIBLE, SC_PATH(ANA_INACCESSIBLE) },
	[WEFT_ANA_PERSISTENT_LOSS] = { NVME_ANA_STATE_PERSISTENT_LOSS,
				       SC_PATH(ANA_PERSISTENT_LOSS) },
	[WEFT_ANA_CHANGE] = { NVME_ANA_STATE_CHANGE, SC_PATH(ANA_TRANSITION) },
};

int tgt_ana_init(struct weft_subsys *s, const struct weft_subsys_options *options)
{
	weft_list_init(&s->ana.waiting);
	s->ana.rules = tgt_ana_rules_with(NULL, options->ana, options->nana);
	return s->ana.rules ? 0 : -ENOMEM;
}

void tgt_ana_free(struct weft_subsys *s)
{
	assert(!s->ana.next && weft_list_empty(&s->ana.waiting));
	free(s->ana.rules);
}

uint8_t tgt_ana_wire(uint8_t state)
{
	assert(state < WEFT_ANA_STATES);
	return states[state].wire;
}

/* --- how commands are answered ---------------------------------------------------------------- */

static uint8_t ctrl_ana_state(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns)
{
	return atomic_load_explicit(&ctrl->ana[ns->ana_group - 1], memory_order_relaxed);
}

uint16_t tgt_ana_check(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns)
{
	return states[ctrl_ana_state(ctrl, ns)].status;
}

/* For a command to all namespaces: the first that cannot be reached decides. */
static uint16_t check_all_namespaces(struct tgt_ctrl *ctrl)
{
	uint16_t sc = 0;

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX && !sc; nsid++)
		if (tgt_ns_find(ctrl->subsys, nsid))
			sc = tgt_ana_check(ctrl, tgt_ns_find(ctrl->subsys, nsid));
	return sc;
}

uint16_t tgt_ana_check_nsid(struct tgt_ctrl *ctrl, uint32_t nsid)
{
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, nsid);

	assert_on_control(ctrl->subsys->target);
	if (nsid == NVME_NSID_BROADCAST)
		return check_all_namespaces(ctrl);
	return ns ? tgt_ana_check(ctrl, ns) : 0;
}

bool tgt_ana_knows_usage(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns)
{
	return ctrl_ana_state(ctrl, ns) != WEFT_ANA_INACCESSIBLE &&
	       ctrl_ana_state(ctrl, ns) != WEFT_ANA_PERSISTENT_LOSS;
}

void tgt_ana_ns_changed(struct weft_subsys *s, uint32_t group)
{
	assert_on_control(s->target);
	assert(group - 1 < WEFT_ANA_GROUP_MAX);
	s->ana.changed[group - 1] = ++s->ana.count;
}

/* --- what a controller shows ------------------------------------------------------------------ */

static bool set_shown_state(struct tgt_ctrl *ctrl, unsigned at, uint8_t state)
{
	struct tgt_ana *ana = &ctrl->subsys->ana;

	assert(state < WEFT_ANA_STATES);
	if (atomic_load_explicit(&ctrl->ana[at], memory_order_relaxed) == state)
		return false;
	atomic_store_explicit(&ctrl->ana[at], state, memory_order_relaxed);
	ana->changed[at] = ana->count + 1; /* as it is when this step is over */
	ctrl->ana_event_due = true;
	return true;
}

static void evaluate_for_ctrl(const struct ana_rules *rules, struct tgt_ctrl *ctrl,
			      uint8_t to_show[WEFT_ANA_GROUP_MAX])
{
	tgt_ana_evaluate(rules, ctrl->portid, ctrl->hostnqn, to_show);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (ctrl->ana[i] == WEFT_ANA_PERSISTENT_LOSS)
			to_show[i] = WEFT_ANA_PERSISTENT_LOSS;
}

/* For groups that are accessible through @ctrl now and will not be. */
bool tgt_ana_show_transition(struct tgt_ctrl *ctrl)
{
	uint8_t then[WEFT_ANA_GROUP_MAX];
	bool closed = false;

	assert_on_control(ctrl->subsys->target);
	assert(ctrl->subsys->ana.next);
	evaluate_for_ctrl(ctrl->subsys->ana.next, ctrl, then);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (!states[ctrl->ana[i]].status && states[then[i]].status)
			closed |= set_shown_state(ctrl, i, WEFT_ANA_CHANGE);
	return closed;
}

bool tgt_ana_show_states(struct tgt_ctrl *ctrl)
{
	uint8_t now[WEFT_ANA_GROUP_MAX];
	bool shown = false;

	assert_on_control(ctrl->subsys->target);
	assert(!ctrl->subsys->ana.next); /* they are the rules by now */
	evaluate_for_ctrl(ctrl->subsys->ana.rules, ctrl, now);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		shown |= set_shown_state(ctrl, i, now[i]);
	return shown;
}

void tgt_ana_persistent_loss(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		set_shown_state(ctrl, i, WEFT_ANA_PERSISTENT_LOSS);
}

/* A controller that connects during a change gets access to groups that the old and the new rules
 * give access to. */
void tgt_ana_states_now(const struct weft_subsys *s, uint16_t portid, const char *hostnqn,
			uint8_t now[WEFT_ANA_GROUP_MAX])
{
	const struct tgt_ana *ana = &s->ana;
	uint8_t then[WEFT_ANA_GROUP_MAX];

	assert_on_control(s->target);
	tgt_ana_evaluate(ana->rules, portid, hostnqn, now);
	tgt_ana_evaluate(ana->next ? ana->next : ana->rules, portid, hostnqn, then);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (now[i] != then[i])
			now[i] = WEFT_ANA_CHANGE;
	if (ana->lost)
		memset(now, WEFT_ANA_PERSISTENT_LOSS, WEFT_ANA_GROUP_MAX);
}

void tgt_ana_ctrl_init(struct tgt_ctrl *ctrl)
{
	uint8_t now[WEFT_ANA_GROUP_MAX];

	tgt_ana_states_now(ctrl->subsys, ctrl->portid, ctrl->hostnqn, now);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		atomic_init(&ctrl->ana[i], now[i]);
}
