/* operator.c - what an operator tells a target that runs.
 *
 * What comes of it is told, and not checked: an order may be impossible by the time that it is
 * heard, because the member that it names has died. */
#include "operator.h"

#include "target/target.h"

static void ordered(void *arg, int rc, const struct weft_err *err)
{
	sim_tell("%s: %s", (const char *)arg, rc < 0 ? err->text : "done");
}

unsigned operator_any_state(bool *for_good)
{
	unsigned state = 1 + (unsigned)sim_random(WEFT_ANA_STATES - 1);

	*for_good = state == WEFT_ANA_PERSISTENT_LOSS;
	return state;
}

void operator_ana(struct node *node, unsigned group, unsigned portid, unsigned state)
{
	static char name[] = "ana-set";
	const struct weft_ana_rule rule = { .group = group, .portid = portid, .state = state };
	const struct sim_node *before = node_enter(node);

	sim_tell("%s: group %u is %s through port %u", node->name, group, weft_ana_names[state],
		 portid);
	must(!weft_ana_set(node_subsys(node), &rule, 1, false, ordered, name, NULL));
	sim_current_node = before;
}

void operator_ana_back(struct node *node, unsigned group, unsigned portid)
{
	operator_ana(node, group, portid, WEFT_ANA_OPTIMIZED);
}

void operator_move(struct node *node, unsigned group, unsigned to)
{
	static char name[] = "move";
	const struct sim_node *before = node_enter(node);

	sim_tell("%s: group %u is to move to %u", node->name, group, to);
	must(!weft_cluster_move(node_subsys(node), group, to, ordered, name, NULL));
	sim_current_node = before;
}

void operator_drain(struct node *node, bool on)
{
	static char name[] = "drain";
	const struct sim_node *before = node_enter(node);

	sim_tell("%s is %sdrained", node->name, on ? "" : "no longer ");
	must(!weft_cluster_drain(node_subsys(node), on, ordered, name, NULL));
	sim_current_node = before;
}
