/* node.h - a target process: two reactors, one subsystem, one shared namespace, ports to listen on. */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "world.h"

struct weft_target;
struct weft_subsys;

#define SIM_NQN "nqn.2026-11.io.weft:sim"

enum { NODE_REACTORS = 2, NODE_PORTS = 2 };

struct node {
	struct sim_node sim;
	struct weft_reactor *reactors[NODE_REACTORS]; /* the first is home */
	struct weft_target *target;
	struct weft_subsys *subsys;
	uint16_t ports[NODE_PORTS];
	unsigned nports;
	bool stopped;
};

void node_start(struct node *node, const char *name);
void node_stop(struct node *node);

#endif
