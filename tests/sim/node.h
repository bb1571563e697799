/* node.h - a target: ports that hosts know, and a process there, or none.
 *
 * A process has two reactors, and a subsystem with a namespace for each disk, which is a group of
 * its own; or it is a stranger's (foreign_target.h), with as much. One that is killed is gone for
 * everybody else at once; here its memory is given back in order, later. */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "scheduler.h"

struct foreign_kind;
struct weft_subsys;
struct process;

#define SIM_NQN "nqn.2026-11.io.weft:sim"

enum { NODES_MAX = 2, NODE_PORTS = 2 };

struct node {
	const char *name;
	unsigned number, of;                /* a member of a cluster; 0: alone */
	const struct foreign_kind *strange; /* NULL: it is ours */
	uint16_t ports[NODE_PORTS];
	struct process *process; /* NULL: none runs */
};

void node_init(struct node *node, unsigned index, unsigned of, const struct foreign_kind *strange);
void node_start(struct node *node);
void node_stop(struct node *node); /* in order */
/* @silent: with its machine, and nobody is told. */
void node_kill(struct node *node, bool silent);
void node_set_still(struct node *node, bool still);
struct weft_subsys *node_subsys(struct node *node);
/* What is called from now on is called there. Returns whose code ran before. */
const struct sim_node *node_enter(struct node *node);
/* Gives back what is left of those that were killed: all of it, or what can be now. */
void nodes_bury(bool all);

#endif
