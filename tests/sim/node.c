/* node.c - a target, from start to stop. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "target/target.h"

#define UUID "5b0e6a52-6d0a-4c39-9f0e-5f1f2a7c1d01"

static void note_port(void *arg, const char *uri, uint16_t portid)
{
	struct node *node = arg;

	node->ports[node->nports++] = (uint16_t)atoi(strrchr(uri, ':') + 1);
}

static void listen_on(struct node *node)
{
	static const struct weft_target_visitor visitor = { .listener = note_port };
	struct weft_uri uri;

	for (int i = 0; i < NODE_PORTS; i++) {
		must(!weft_uri_parse("nvme+tcp://127.0.0.1:0", &uri, NULL));
		must(!weft_listener_add(node->target, &uri, NULL));
	}
	weft_target_visit(node->target, &visitor, node);
	must(node->nports == NODE_PORTS);
}

static void add_namespace(struct node *node)
{
	const struct weft_subsys_options options = { .nqn = SIM_NQN, .allow_any_host = true };
	const struct weft_ns_options ns = { .nsid = 1, .block = DISK_BLOCK, .uuid = UUID };
	uint32_t nsid;

	must(!weft_subsys_add(node->target, &options, &node->subsys, NULL));
	must(!weft_ns_add(node->subsys, &ns, disk_open(), &nsid, NULL));
}

void node_start(struct node *node, const char *name)
{
	const struct weft_reactor_options options = { .cpu = -1 };
	struct weft_target_options target = {
		.reactors = node->reactors,
		.nreactors = NODE_REACTORS,
		.depth_max = 64,
		.io_queues_max = 8,
		.queues_max = 64,
	};

	memset(node, 0, sizeof(*node));
	node->sim.name = name;
	for (int i = 0; i < NODE_REACTORS; i++) {
		must(!weft_reactor_create(&node->reactors[i], &options, NULL));
		world_add_reactor(node->reactors[i], &node->sim, NULL, NULL);
	}
	target.home = node->reactors[0];
	target.reactors = node->reactors;
	must(!weft_target_create(&node->target, &target, NULL));
	listen_on(node);
	add_namespace(node);
}

static void stopped(void *arg)
{
	struct node *node = arg;

	node->stopped = true;
}

static bool has_stopped(void *arg)
{
	struct node *node = arg;

	return node->stopped;
}

void node_stop(struct node *node)
{
	weft_target_stop(node->target, stopped, node);
	must(world_run_until(has_stopped, node, 60000 * MS));
	world_run(10 * MS);
	for (int i = 0; i < NODE_REACTORS; i++) {
		world_remove_reactor(node->reactors[i]);
		weft_reactor_destroy(node->reactors[i]);
	}
}
