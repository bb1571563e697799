/* faults.c - a connection is reset, a way is cut and healed, a process stands still for a while.
 *
 * Everything that was broken is whole again when faults_next() returns; what it did to those who were
 * using it goes on. */
#include "faults.h"

#include "wire.h"

static struct node *any_node(const struct faults *f)
{
	return &f->nodes[world_random(f->nnodes)];
}

/* NULL: all of them */
static const struct sim_node *any_host(const struct faults *f)
{
	unsigned i = (unsigned)world_random(f->napps + 1);

	return i < f->napps ? &f->apps[i].sim : NULL;
}

static const char *name_of(const struct sim_node *host)
{
	return host ? host->name : "all hosts";
}

/* Mostly short; sometimes longer than anybody's patience. */
static uint64_t a_while(void)
{
	return world_chance(80) ? world_random(300 * MS) : world_random(20000 * MS);
}

static void reset(const struct faults *f)
{
	struct node *node = any_node(f);
	unsigned port = (unsigned)world_random(NODE_PORTS);
	const struct sim_node *host = any_host(f);

	world_tell("reset: %s, %s port %u", name_of(host), node->sim.name, port);
	wires_reset(host, node->ports[port]);
}

static void cut(const struct faults *f)
{
	struct node *node = any_node(f);
	unsigned port = (unsigned)world_random(NODE_PORTS);
	const struct sim_node *host = any_host(f);

	world_tell("cut: %s, %s port %u", name_of(host), node->sim.name, port);
	wires_cut(host, node->ports[port]);
	world_run(a_while());
	world_tell("healed: %s, %s port %u", name_of(host), node->sim.name, port);
	wires_heal(host, node->ports[port]);
}

static void stand_still(const struct faults *f)
{
	struct node *node = any_node(f);

	world_tell("%s stands still", node->sim.name);
	node->sim.still = true;
	world_run(a_while());
	world_tell("%s goes on", node->sim.name);
	node->sim.still = false;
}

void faults_next(const struct faults *f)
{
	switch (f->silent ? world_random(4) : 0) {
	case 0:
	case 1:
		reset(f);
		break;
	case 2:
		cut(f);
		break;
	default:
		stand_still(f);
	}
	world_run(world_random(200 * MS));
}
