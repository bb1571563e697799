/* fault_kinds.c - each thing that can go wrong: how it begins, and how it is mended. */
#include "fault_kinds.h"

#include "network.h"
#include "operator.h"
#include "ports.h"

enum { TROUBLE_APPS_MAX = 4 };

static struct node *any_node(const struct faults *f)
{
	return &f->nodes[sim_random(f->nnodes)];
}

/* NULL: all of them */
static const struct sim_node *any_host(const struct faults *f)
{
	unsigned i = (unsigned)sim_random(f->napps + 1);

	return i < f->napps ? &f->apps[i].sim : NULL;
}

static const char *name_of(const struct sim_node *host)
{
	return host ? host->name : "all hosts";
}

/* --- ways ------------------------------------------------------------------------------------- */

static bool reset_connection(const struct faults *f, struct active_fault *t)
{
	uint16_t port = any_node(f)->ports[sim_random(NODE_PORTS)];
	const struct sim_node *host = any_host(f);

	sim_tell("reset: %s, port %u", name_of(host), port);
	network_reset(host, port);
	return true;
}

static void heal_path(const struct faults *f, const struct active_fault *t)
{
	sim_tell("healed: %s, port %u", name_of(t->host), t->port);
	port_heal(t->host, t->port);
}

static bool cut_path(const struct faults *f, struct active_fault *t)
{
	t->port = any_node(f)->ports[sim_random(NODE_PORTS)];
	t->host = any_host(f);
	t->end = heal_path;
	sim_tell("cut: %s, port %u", name_of(t->host), t->port);
	port_cut(t->host, t->port);
	return true;
}

/* --- processes -------------------------------------------------------------------------------- */

/* It was not ended meanwhile. */
static bool is_same(const struct active_fault *t)
{
	return t->node->process && t->node->process == t->process;
}

static void resume_process(const struct faults *f, const struct active_fault *t)
{
	if (!is_same(t))
		return;
	sim_tell("%s goes on", t->node->name);
	node_set_still(t->node, false);
}

static bool pause_process(const struct faults *f, struct active_fault *t)
{
	t->node = any_node(f);
	t->process = t->node->process;
	if (!t->process)
		return false;
	t->end = resume_process;
	sim_tell("%s stands still", t->node->name);
	node_set_still(t->node, true);
	return true;
}

/* Every process runs for a moment, and then others do that are none of ours. */
static struct share {
	struct sim_event event;
	struct node *node;
	struct app *app;
	bool still;
} shares[NODES_MAX + TROUBLE_APPS_MAX];
static unsigned nshares; /* 0: there is CPU for everybody */

static void set_still(struct share *s, bool still)
{
	s->still = still;
	if (s->node)
		node_set_still(s->node, still);
	else
		s->app->sim.still = still;
}

static void take_turns(struct sim_event *event)
{
	struct share *s = container_of(event, struct share, event);

	set_still(s, !s->still);
	sim_at(event, s->still ? sim_random(300 * MS) : MS + sim_random(4 * MS));
}

static void calm(const struct faults *f, const struct active_fault *t)
{
	sim_tell("the CPUs are free");
	for (unsigned i = 0; i < nshares; i++) {
		sim_cancel(&shares[i].event);
		set_still(&shares[i], false);
	}
	nshares = 0;
}

static bool keep_busy(const struct faults *f, struct active_fault *t)
{
	if (nshares)
		return false;
	sim_tell("the CPUs are busy");
	for (unsigned i = 0; i < f->nnodes; i++)
		shares[nshares++] = (struct share){ .node = &f->nodes[i] };
	for (unsigned i = 0; i < f->napps; i++)
		shares[nshares++] = (struct share){ .app = &f->apps[i] };
	for (unsigned i = 0; i < nshares; i++) {
		shares[i].event.fn = take_turns;
		sim_at(&shares[i].event, sim_random(10 * MS));
	}
	t->end = calm;
	return true;
}

static void start_again(const struct faults *f, const struct active_fault *t)
{
	if (!t->node->process)
		node_start(t->node);
}

static bool end_process(const struct faults *f, struct active_fault *t,
			void (*how)(struct node *node))
{
	t->node = any_node(f);
	if (!t->node->process)
		return false;
	t->end = start_again;
	how(t->node);
	return true;
}

static void kill_loudly(struct node *node)
{
	node_kill(node, false);
}

static void kill_silently(struct node *node)
{
	node_kill(node, true);
}

static bool kill_process(const struct faults *f, struct active_fault *t)
{
	return end_process(f, t, kill_loudly);
}

static bool crash_machine(const struct faults *f, struct active_fault *t)
{
	return end_process(f, t, kill_silently);
}

static bool stop_node(const struct faults *f, struct active_fault *t)
{
	return end_process(f, t, node_stop);
}

/* --- storage ---------------------------------------------------------------------------------- */

void faults_start_all_nodes(const struct faults *f)
{
	for (unsigned i = 0; i < f->nnodes; i++)
		if (!f->nodes[i].process)
			node_start(&f->nodes[i]);
}

static void restore_power(const struct faults *f, const struct active_fault *t)
{
	ledger_restore_power();
	faults_start_all_nodes(f);
}

static bool lose_power(const struct faults *f, struct active_fault *t)
{
	sim_tell("power is lost");
	for (unsigned i = 0; i < f->nnodes; i++)
		if (f->nodes[i].process)
			node_kill(&f->nodes[i], true);
	disks_lose_power();
	ledger_lose_power();
	t->end = restore_power;
	return true;
}

static void mend_disk(const struct faults *f, const struct active_fault *t)
{
	sim_tell("disk %u is mended", t->disk);
	disk_trouble(t->disk, false);
}

static bool break_disk(const struct faults *f, struct active_fault *t)
{
	t->disk = (unsigned)sim_random(DISKS);
	t->end = mend_disk;
	sim_tell("disk %u has errors", t->disk);
	disk_trouble(t->disk, true);
	return true;
}

/* --- what an operator does -------------------------------------------------------------------- */

static void reset_ana(const struct faults *f, const struct active_fault *t)
{
	if (is_same(t))
		operator_ana_back(t->node, t->disk + 1, t->port);
}

/* What is lost for good is so through the first port only: one has to stay. */
static bool change_ana(const struct faults *f, struct active_fault *t)
{
	bool for_good;
	unsigned state = operator_any_state(&for_good);

	t->node = any_node(f);
	t->process = t->node->process;
	t->disk = (unsigned)sim_random(DISKS);
	t->port = for_good ? 1 : (uint16_t)sim_random(NODE_PORTS + 1);
	if (!t->process)
		return false;
	t->end = reset_ana;
	operator_ana(t->node, t->disk + 1, t->port, state);
	return true;
}

static bool move_group(const struct faults *f, struct active_fault *t)
{
	struct node *node = any_node(f);

	if (!node->process)
		return false;
	operator_move(node, (unsigned)sim_random(DISKS + 1), 1 + (unsigned)sim_random(f->nnodes));
	return true;
}

static void end_drain(const struct faults *f, const struct active_fault *t)
{
	if (is_same(t))
		operator_drain(t->node, false);
}

static bool drain_node(const struct faults *f, struct active_fault *t)
{
	t->node = any_node(f);
	t->process = t->node->process;
	if (!t->process)
		return false;
	t->end = end_drain;
	operator_drain(t->node, true);
	return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

const struct fault_type fault_types[] = {
	[FAULT_RESET] = { "resets", reset_connection },
	[FAULT_CUT] = { "cuts", cut_path },
	[FAULT_STILL] = { "standstills", pause_process },
	[FAULT_BUSY] = { "busy times", keep_busy },
	[FAULT_KILL] = { "kills", kill_process },
	[FAULT_CRASH] = { "crashes", crash_machine },
	[FAULT_STOP] = { "stops", stop_node },
	[FAULT_POWER] = { "power losses", lose_power },
	[FAULT_ERROR] = { "disk errors", break_disk },
	[FAULT_ANA] = { "ANA changes", change_ana },
	[FAULT_MOVE] = { "moves", move_group },
	[FAULT_DRAIN] = { "drains", drain_node },
};
