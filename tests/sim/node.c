/* node.c - a target's process, from start to stop, or to its sudden end. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "foreign_target.h"
#include "network.h"
#include "ports.h"
#include "state.h"
#include "target/target.h"

enum { REACTORS = 2, PORT_FIRST = 4420 };

struct process {
	struct weft_list link; /* the dead */
	struct sim_node sim;
	struct foreign_target *stranger;         /* then it has none of these */
	struct weft_reactor *reactors[REACTORS]; /* the first is the control reactor */
	struct weft_target *target;
	struct weft_subsys *subsys;
	uint16_t sockets[NODE_PORTS];
	unsigned nsockets;
	bool has_state;
	uint64_t stopped_ns; /* 0: it has not */
};

static struct weft_list dead = { &dead, &dead };

void node_init(struct node *node, unsigned index, unsigned of, const struct foreign_kind *strange)
{
	static const char *const names[NODES_MAX] = { "target 1", "target 2" };

	*node = (struct node){
		.name = names[index],
		.number = of > 1 ? index + 1 : 0,
		.of = of > 1 ? of : 0,
		.strange = strange,
	};
	for (unsigned i = 0; i < NODE_PORTS; i++)
		node->ports[i] = (uint16_t)(PORT_FIRST + index * NODE_PORTS + i);
}

struct weft_subsys *node_subsys(struct node *node)
{
	return node->process->subsys;
}

const struct sim_node *node_enter(struct node *node)
{
	const struct sim_node *before = sim_current_node;

	sim_current_node = &node->process->sim;
	return before;
}

void node_set_still(struct node *node, bool still)
{
	if (node->process)
		node->process->sim.still = still;
}

/* --- start ------------------------------------------------------------------------------------ */

static void note_socket(void *arg, const char *uri, uint16_t portid)
{
	struct process *p = arg;

	p->sockets[p->nsockets++] = (uint16_t)atoi(strrchr(uri, ':') + 1);
}

static void add_listeners(struct process *p)
{
	static const struct weft_target_visitor visitor = { .listener = note_socket };
	struct weft_uri uri;

	for (int i = 0; i < NODE_PORTS; i++) {
		must(!weft_uri_parse("nvme+tcp://127.0.0.1:0", &uri, NULL));
		must(!weft_listener_add(p->target, &uri, NULL));
	}
	weft_target_visit(p->target, &visitor, p);
}

static void listen_on(const struct node *node, const struct process *p)
{
	must(p->nsockets == NODE_PORTS);
	for (int i = 0; i < NODE_PORTS; i++) {
		network_revive(node->ports[i]);
		port_listen(node->ports[i], p->sockets[i]);
	}
}

static struct weft_store *open_state(const struct node *node, struct process *p)
{
	const struct weft_store_options options = { p->reactors[0], state_spec(), node->number,
						    node->of };
	struct weft_store *store = NULL;

	if (!node->number)
		return NULL;
	must(!weft_store_open(&store, &options, NULL));
	p->has_state = true;
	return store;
}

static void add_subsystem(const struct node *node, struct process *p)
{
	static const char *const uuids[DISKS] = { "5b0e6a52-6d0a-4c39-9f0e-5f1f2a7c1d01",
						  "5b0e6a52-6d0a-4c39-9f0e-5f1f2a7c1d02" };
	struct weft_subsys_options options = { .nqn = SIM_NQN, .allow_any_host = true };
	struct weft_ns_options ns = { .block = DISK_BLOCK };

	options.node = node->number;
	options.nodes = node->of;
	options.store = open_state(node, p);
	must(!weft_subsys_add(p->target, &options, &p->subsys, NULL));
	for (unsigned i = 0; i < DISKS; i++) {
		ns.nsid = ns.ana_group = i + 1;
		ns.uuid = uuids[i];
		must(!weft_ns_add(p->subsys, &ns, disk_open(i, node->number, &p->sim), &ns.nsid,
				  NULL));
	}
	weft_subsys_start(p->subsys);
}

static void create_target(struct process *p)
{
	const struct weft_reactor_options options = { .cpu = -1 };
	struct weft_target_options target = {
		.reactors = p->reactors,
		.nreactors = REACTORS,
		.depth_max = 64,
		.io_queues_max = 8,
		.queues_max = 64,
	};

	for (int i = 0; i < REACTORS; i++) {
		must(!weft_reactor_create(&p->reactors[i], &options, NULL));
		sim_add_reactor(p->reactors[i], &p->sim, NULL, NULL);
	}
	target.control = p->reactors[0];
	must(!weft_target_create(&p->target, &target, NULL));
}

static void start_ours(const struct node *node, struct process *p)
{
	create_target(p);
	add_subsystem(node, p);
	add_listeners(p);
}

static void start_strange(const struct node *node, struct process *p)
{
	p->stranger = foreign_open(&p->sim, node->strange, p->sockets, NODE_PORTS);
	p->nsockets = NODE_PORTS;
}

static bool is_free(void *arg)
{
	const struct node *node = arg;

	return !disks_left(node->number) && !state_is_held();
}

void node_start(struct node *node)
{
	const struct sim_node *before = sim_current_node;
	struct process *p = calloc(1, sizeof(*p));

	must(p && !node->process);
	nodes_bury(false);
	must(sim_run_until(is_free, node, 60000 * MS));
	sim_tell("%s starts", node->name);
	p->sim.name = node->name;
	sim_current_node = &p->sim;
	node->process = p;
	if (node->strange)
		start_strange(node, p);
	else
		start_ours(node, p);
	listen_on(node, p);
	sim_current_node = before;
}

/* --- stop ------------------------------------------------------------------------------------- */

static void stopped(void *arg)
{
	struct process *p = arg;

	p->stopped_ns = sim_now();
}

/* What its reactors had sent to each other has come. */
static bool is_over(void *arg)
{
	struct process *p = arg;

	return p->stopped_ns && sim_now() >= p->stopped_ns + 10 * MS;
}

static void stop_process(struct process *p)
{
	const struct sim_node *before = sim_current_node;

	sim_current_node = &p->sim;
	weft_target_prepare_stop(p->target);
	weft_target_stop(p->target, stopped, p);
	sim_current_node = before;
}

static void free_process(struct process *p)
{
	if (p->stranger) {
		foreign_close(p->stranger);
		free(p);
		return;
	}
	must(sim_run_until(is_over, p, 60000 * MS));
	for (int i = 0; i < REACTORS; i++) {
		sim_remove_reactor(p->reactors[i]);
		weft_reactor_destroy(p->reactors[i]);
	}
	if (p->has_state)
		state_closed(&p->sim);
	free(p);
}

void node_stop(struct node *node)
{
	struct process *p = node->process;

	sim_tell("%s stops", node->name);
	node->process = NULL;
	p->sim.still = false;
	for (int i = 0; i < NODE_PORTS; i++)
		port_close(node->ports[i], PORT_REFUSES);
	if (!p->stranger)
		stop_process(p);
	free_process(p);
	for (int i = 0; i < NODE_PORTS; i++) /* what it had not accepted */
		network_abandon(node->ports[i], false);
}

/* --- sudden end ------------------------------------------------------------------------------- */

void node_kill(struct node *node, bool silent)
{
	struct process *p = node->process;

	sim_tell("%s is killed%s", node->name, silent ? ", silently" : "");
	node->process = NULL;
	p->sim.still = false;
	p->sim.dead = true;
	for (int i = 0; i < NODE_PORTS; i++) {
		port_close(node->ports[i], silent ? PORT_SILENT : PORT_REFUSES);
		network_abandon(node->ports[i], silent);
	}
	disks_killed(&p->sim);
	if (p->has_state)
		state_killed(&p->sim);
	weft_list_push(&dead, &p->link);
	stop_process(p);
}

void nodes_bury(bool all)
{
	struct process *p, *next;

	weft_list_for_each_safe(p, next, &dead, link) {
		if (!all && !is_over(p))
			continue;
		weft_list_remove(&p->link);
		free_process(p);
	}
}
