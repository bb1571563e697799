/* status.c - status: everything that runs, as one JSON value. */
#include "daemon/internal.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "base/clock.h"
#include "daemon/control/methods.h"
#include "proto/nvme.h"

struct status_walk {
	json_t *listeners, *subsystems, *reactors, *queues;
	json_t *discovery; /* its controllers */
	/* Of the subsystem being walked. */
	json_t *members, *groups, *hosts, *ana, *namespaces, *ports, *controllers;
};

static void add_listener(void *arg, const char *uri, uint16_t portid)
{
	struct status_walk *w = arg;

	json_array_append_new(w->listeners, json_pack("{s:s, s:i}", "uri", uri, "portid", portid));
}

/* The discovery subsystem is not one that a user made; only its controllers are shown. */
static void add_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct status_walk *w = arg;
	json_t *subsys;

	w->hosts = w->ana = w->namespaces = w->ports = NULL;
	w->controllers = w->discovery;
	if (!strcmp(info->nqn, NVME_NQN_DISCOVERY))
		return;
	w->members = info->node ? json_array() : NULL;
	w->groups = info->node ? json_array() : NULL;
	w->hosts = json_array();
	w->ana = json_array();
	w->namespaces = json_array();
	w->ports = json_array();
	w->controllers = json_array();
	subsys = json_pack("{s:s, s:s, s:s, s:s*, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "nqn",
			   info->nqn, "serial", info->serial, "model", info->model, "state",
			   info->state, "lost", info->lost, "allow_any_host", info->allow_any_host,
			   "hosts", w->hosts, "ana", w->ana, "namespaces", w->namespaces, "ports",
			   w->ports, "controllers", w->controllers);
	if (info->node)
		json_object_set_new(subsys, "cluster",
				    json_pack("{s:I, s:I, s:o, s:o}", "node",
					      (json_int_t)info->node, "of", (json_int_t)info->nodes,
					      "members", w->members, "groups", w->groups));
	json_array_append_new(w->subsystems, subsys);
}

static void add_member(void *arg, const struct weft_member_info *info)
{
	json_t *groups = json_array(), *lacks = json_array(), *other_sizes = json_array();
	struct status_walk *w = arg;

	assert(w->members); /* it is of a cluster */
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (info->serves[i])
			json_array_append_new(groups, json_integer(i + 1));
	for (unsigned i = 0; i < WEFT_NSID_MAX; i++)
		if (info->lacks[i])
			json_array_append_new(lacks, json_integer(i + 1));
	for (unsigned i = 0; i < WEFT_NSID_MAX; i++)
		if (info->other_size[i])
			json_array_append_new(other_sizes,
					      json_pack("{s:i, s:I}", "nsid", (int)i + 1, "size",
							(json_int_t)info->other_size[i]));
	json_array_append_new(w->members,
			      json_pack("{s:I, s:b, s:b, s:o, s:o, s:o}", "node",
					(json_int_t)info->node, "alive", info->alive, "draining",
					info->draining, "ana_groups", groups, "lacks", lacks,
					"other_sizes", other_sizes));
}

static void add_group(void *arg, const struct weft_group_info *info)
{
	struct status_walk *w = arg;

	assert(w->groups);
	json_array_append_new(w->groups,
			      json_pack("{s:I, s:I, s:I, s:s}", "ana_group",
					(json_int_t)info->group, "owner", (json_int_t)info->owner,
					"next", (json_int_t)info->next, "state", info->state));
}

static void add_host(void *arg, const char *hostnqn)
{
	struct status_walk *w = arg;

	assert(w->hosts);
	json_array_append_new(w->hosts, json_string(hostnqn));
}

/* As in a file and in ana-set, with their names; fields that a rule leaves open are left out. */
static void add_ana_rule(void *arg, const struct weft_ana_rule *rule)
{
	json_t *item = json_pack("{s:I, s:s}", "group", (json_int_t)rule->group, "state",
				 weft_ana_names[rule->state]);
	struct status_walk *w = arg;

	if (rule->portid)
		json_object_set_new(item, "portid", json_integer(rule->portid));
	if (rule->hostnqn[0])
		json_object_set_new(item, "hostnqn", json_string(rule->hostnqn));
	json_array_append_new(w->ana, item);
}

static const char *const reservations[] = {
	"none",
	"write exclusive",
	"exclusive access",
	"write exclusive, registrants only",
	"exclusive access, registrants only",
	"write exclusive, all registrants",
	"exclusive access, all registrants",
};

static void add_ns(void *arg, const struct weft_target_ns_info *info)
{
	struct status_walk *w = arg;

	assert(w->namespaces && info->reservation < sizeof(reservations) / sizeof(*reservations));
	json_array_append_new(w->namespaces,
			      json_pack("{s:I, s:s, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:s, s:I, "
					"s:I, s:I, s:o*}",
					"nsid", (json_int_t)info->nsid, "backend", info->backend,
					"size", (json_int_t)info->size, "used",
					(json_int_t)info->used, "block_size",
					(json_int_t)info->block, "uuid", info->uuid, "nguid",
					info->nguid, "read_only", info->read_only, "ana_group",
					(json_int_t)info->ana_group, "reservation",
					reservations[info->reservation], "registrants",
					(json_int_t)info->registrants, "read_errors",
					(json_int_t)info->read_errors, "write_errors",
					(json_int_t)info->write_errors, "held_by_node",
					info->held_by ? json_integer(info->held_by) : NULL));
}

/* The host chose its NQN: it is escaped. */
static json_t *printable_or_null(const char *text)
{
	return text ? weft_json_printable(text) : json_null();
}

static void add_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	struct status_walk *w = arg;
	json_t *ctrl =
		json_pack("{s:i, s:i, s:o, s:o, s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:[], s:[]}",
			  "cntlid", info->cntlid, "portid", info->portid, "hostnqn",
			  printable_or_null(info->hostnqn), "hostid",
			  printable_or_null(info->hostid), "peer", printable_or_null(info->peer),
			  "queues", (int)info->io_queues, "kato_ms", (json_int_t)info->kato_ms,
			  "reads", (json_int_t)info->reads, "writes", (json_int_t)info->writes,
			  "read_bytes", (json_int_t)info->read_bytes, "write_bytes",
			  (json_int_t)info->write_bytes, "queue_counters", "ana");

	json_array_append_new(info->discovery ? w->discovery : w->controllers, ctrl);
}

/* A list of the controller that came last. */
static json_t *ctrl_list(const struct status_walk *w, const char *key)
{
	json_t *ctrl = json_array_get(w->controllers, json_array_size(w->controllers) - 1);

	assert(ctrl);
	return json_object_get(ctrl, key);
}

static json_t *state_json(uint32_t group, enum weft_ana_state state)
{
	assert(state < WEFT_ANA_STATES);
	return json_pack("{s:I, s:s}", "ana_group", (json_int_t)group, "state",
			 weft_ana_names[state]);
}

static void add_ana(void *arg, uint32_t group, enum weft_ana_state state)
{
	json_array_append_new(ctrl_list(arg, "ana"), state_json(group, state));
}

/* The groups of one port come one after the other. */
static void add_port_ana(void *arg, uint16_t portid, uint32_t group, enum weft_ana_state state)
{
	struct status_walk *w = arg;
	json_t *port = json_array_get(w->ports, json_array_size(w->ports) - 1);

	if (json_integer_value(json_object_get(port, "portid")) != portid) {
		port = json_pack("{s:i, s:[]}", "portid", portid, "ana");
		json_array_append_new(w->ports, port);
	}
	json_array_append_new(json_object_get(port, "ana"), state_json(group, state));
}

/* Only RDMA has them. */
static void add_work_requests(json_t *queue, const struct weft_queue_info *info)
{
	json_auto_t *counters = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "posted",
					  (json_int_t)info->posted, "completed",
					  (json_int_t)info->completed, "flushed",
					  (json_int_t)info->flushed, "retried",
					  (json_int_t)info->retried, "rnr", (json_int_t)info->rnr,
					  "key_hits", (json_int_t)info->key_hits, "registrations",
					  (json_int_t)info->registrations);

	json_object_update(queue, counters);
}

static void add_queue(void *arg, const struct weft_queue_info *info)
{
	json_t *queue = json_pack("{s:i, s:I, s:s, s:s, s:I}", "qid", info->qid, "depth",
				  (json_int_t)info->depth, "state", info->state, "transport",
				  info->transport, "copied_bytes", (json_int_t)info->copied_bytes);

	if (!strcmp(info->transport, "rdma"))
		add_work_requests(queue, info);
	json_array_append_new(ctrl_list(arg, "queue_counters"), queue);
}

static void add_reactor(void *arg, const struct weft_reactor_info *info)
{
	struct status_walk *w = arg;

	json_array_append_new(w->reactors,
			      json_pack("{s:i, s:i, s:i, s:i, s:I}", "cpu", info->cpu, "queues",
					(int)info->queues, "unknown", (int)info->unknown,
					"unknown_max", (int)info->unknown_max, "displaced",
					(json_int_t)info->displaced));
}

static void add_admission(void *arg, const struct weft_admission_info *info)
{
	struct status_walk *w = arg;

	w->queues = json_pack("{s:I, s:I, s:I}", "max", (json_int_t)info->max, "taken",
			      (json_int_t)info->taken, "discovery", (json_int_t)info->discovery);
}

static double uptime_s(const struct weft_daemon *d)
{
	return (double)(weft_monotonic_ns() - d->started_ns) / 1e9;
}

json_t *weft_status_json(struct weft_daemon *d)
{
	static const struct weft_target_visitor visitor = {
		.listener = add_listener,
		.subsys = add_subsys,
		.member = add_member,
		.group = add_group,
		.host = add_host,
		.ana_rule = add_ana_rule,
		.ns = add_ns,
		.ctrl = add_ctrl,
		.queue = add_queue,
		.ana = add_ana,
		.port_ana = add_port_ana,
		.reactor = add_reactor,
		.admission = add_admission,
	};
	struct status_walk w = {
		.listeners = json_array(),
		.subsystems = json_array(),
		.reactors = json_array(),
		.discovery = json_array(),
	};

	assert_on(d->control_reactor);
	weft_target_visit(d->target, &visitor, &w);
	return json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:{s:o}, s:o, s:o}", "version",
			 weft_version(), "pid", (int)getpid(), "engine",
			 weft_reactor_engine_name(d->threads.reactors[0]), "uptime_s",
			 (json_int_t)uptime_s(d), "config", printable_or_null(d->doc->file),
			 "listeners", w.listeners, "subsystems", w.subsystems, "discovery",
			 "controllers", w.discovery, "reactors", w.reactors, "queues", w.queues);
}

void weft_method_status(struct weft_rpc_call *call, void *params)
{
	weft_rpc_result(call, weft_status_json(call->rpc->daemon));
}
