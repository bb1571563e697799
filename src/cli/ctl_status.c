/* ctl_status.c - the status of a target, for people. */
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/units.h"
#include "cli/ctl.h"
#include "cli/print.h"

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

static void print_head(json_t *status)
{
	const char *file = json_string_value(json_object_get(status, "config"));
	json_t *item;
	size_t index;

	printf("weft %s, pid %lld, engine %s, up ", text_of(status, "version"),
	       (long long)weft_json_number(status, "pid"), text_of(status, "engine"));
	printf("%s", weft_uptime_text((uint64_t)weft_json_number(status, "uptime_s")).s);
	printf("\nconfiguration: %s\n", file ? file : "none (started with options)");
	json_array_foreach(json_object_get(status, "listeners"), index, item)
		printf("listening on %s (port id %lld)\n", text_of(item, "uri"),
		       (long long)weft_json_number(item, "portid"));
}

/* Of its storage, where there are any. */
static void print_errors(json_t *ns)
{
	json_int_t reads = weft_json_number(ns, "read_errors"),
		   writes = weft_json_number(ns, "write_errors");

	if (reads || writes)
		printf("  %6s storage failed %lld read%s and %lld write%s; the target's log says why\n",
		       "", (long long)reads, weft_plural((uint64_t)reads), (long long)writes,
		       weft_plural((uint64_t)writes));
}

static void print_holder(json_t *ns)
{
	json_int_t node = weft_json_number(ns, "held_by_node");

	if (node)
		printf("  %6s NOT SERVED: a process that is no member has it open as node %lld; the "
		       "target's log says more\n",
		       "", (long long)node);
}

static void print_namespaces(json_t *list)
{
	struct weft_text size, used;
	json_t *ns;
	size_t index;

	if (json_array_size(list))
		printf("  %6s %8s %8s %6s %5s  %-36s  %s\n", "NSID", "SIZE", "USED", "BLOCK",
		       "GROUP", "UUID", "BACKEND");
	json_array_foreach(list, index, ns) {
		size = weft_short_size_text((uint64_t)weft_json_number(ns, "size"));
		used = weft_short_size_text((uint64_t)weft_json_number(ns, "used"));
		printf("  %6lld %8s %8s %6lld %5lld  %-36s  %s%s\n",
		       (long long)weft_json_number(ns, "nsid"), size.s, used.s,
		       (long long)weft_json_number(ns, "block_size"),
		       (long long)weft_json_number(ns, "ana_group"), text_of(ns, "uuid"),
		       text_of(ns, "backend"),
		       json_is_true(json_object_get(ns, "read_only")) ? " (read-only)" : "");
		print_errors(ns);
		print_holder(ns);
	}
}

/* Its address and port, without nvme+tcp:// or nvme+rdma:// */
static const char *peer_of(json_t *ctrl)
{
	const char *peer = text_of(ctrl, "peer"), *scheme = strstr(peer, "://");

	return scheme ? scheme + 3 : peer;
}

/* What is not as it is by default. */
static void print_ana(json_t *groups)
{
	json_t *group;
	size_t index;

	json_array_foreach(groups, index, group)
		if (strcmp(text_of(group, "state"), "optimized"))
			printf("  %6s group %lld: %s\n", "",
			       (long long)weft_json_number(group, "ana_group"),
			       text_of(group, "state"));
}

static void print_controllers(json_t *list)
{
	struct weft_text in, out;
	json_t *ctrl;
	size_t index;

	if (json_array_size(list))
		printf("  %6s %10s %12s %8s %12s %8s  %-21s %s\n", "CNTLID", "I/O QUEUES", "READS",
		       "READ", "WRITES", "WRITTEN", "PEER", "HOST");
	json_array_foreach(list, index, ctrl) {
		out = weft_short_size_text((uint64_t)weft_json_number(ctrl, "read_bytes"));
		in = weft_short_size_text((uint64_t)weft_json_number(ctrl, "write_bytes"));
		printf("  %6lld %10lld %12lld %8s %12lld %8s  %-21s %s\n",
		       (long long)weft_json_number(ctrl, "cntlid"),
		       (long long)weft_json_number(ctrl, "queues"),
		       (long long)weft_json_number(ctrl, "reads"), out.s,
		       (long long)weft_json_number(ctrl, "writes"), in.s, peer_of(ctrl),
		       text_of(ctrl, "hostnqn"));
		print_ana(json_object_get(ctrl, "ana"));
	}
}

/* "1-3, 7" of ascending numbers. */
static void print_ranges(json_t *numbers)
{
	size_t count = json_array_size(numbers), end;

	for (size_t i = 0; i < count; i = end + 1) {
		json_int_t first = json_integer_value(json_array_get(numbers, i));

		for (end = i; json_integer_value(json_array_get(numbers, end + 1)) ==
			      first + (json_int_t)(end + 1 - i);)
			end++;
		printf("%s%lld", i ? ", " : "", (long long)first);
		if (end > i)
			printf("-%lld", (long long)first + (long long)(end - i));
	}
}

/* Namespaces that members have in different sizes: this member's size of each. */
static void print_other_sizes(json_t *list)
{
	struct weft_text size;
	size_t index;
	json_t *ns;

	if (json_array_size(list))
		printf(", OTHER SIZE namespace%s ", weft_plural(json_array_size(list)));
	json_array_foreach(list, index, ns) {
		size = weft_short_size_text((uint64_t)weft_json_number(ns, "size"));
		printf("%s%lld (%s)", index ? ", " : "", (long long)weft_json_number(ns, "nsid"),
		       size.s);
	}
}

static void print_served(json_t *member)
{
	json_t *groups = json_object_get(member, "ana_groups");

	printf("serves ");
	if (json_array_size(groups))
		printf("group%s ", weft_plural(json_array_size(groups)));
	else
		printf("none");
	print_ranges(groups);
	if (json_is_true(json_object_get(member, "draining")))
		printf(", drains");
	if (json_array_size(json_object_get(member, "lacks"))) {
		printf(", LACKS namespace%s ",
		       weft_plural(json_array_size(json_object_get(member, "lacks"))));
		print_ranges(json_object_get(member, "lacks"));
	}
	print_other_sizes(json_object_get(member, "other_sizes"));
}

/* Of one port, the groups with this state. */
static json_t *groups_with(json_t *port, const char *state)
{
	json_t *list = json_array(), *group;
	size_t index;

	json_array_foreach(json_object_get(port, "ana"), index, group)
		if (!strcmp(text_of(group, "state"), state))
			json_array_append(list, json_object_get(group, "ana_group"));
	return list;
}

/* "port 1: optimized 1-3, 7; inaccessible 4" */
static void print_ports(json_t *ports)
{
	static const char *const states[] = { "optimized", "non-optimized", "inaccessible",
					      "persistent-loss", "change" };
	json_t *port;
	size_t index;

	json_array_foreach(ports, index, port) {
		const char *before = " ";

		printf("  ANA port %lld:", (long long)weft_json_number(port, "portid"));
		for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
			json_auto_t *groups = groups_with(port, states[i]);

			if (!json_array_size(groups))
				continue;
			printf("%s%s ", before, states[i]);
			print_ranges(groups);
			before = "; ";
		}
		printf("\n");
	}
}

static void print_cluster(json_t *cluster)
{
	json_t *member;
	size_t index;

	printf("  node %lld of %lld:", (long long)weft_json_number(cluster, "node"),
	       (long long)weft_json_number(cluster, "of"));
	json_array_foreach(json_object_get(cluster, "members"), index, member) {
		printf("%s %lld ", index ? "," : "", (long long)weft_json_number(member, "node"));
		if (!json_is_true(json_object_get(member, "alive")))
			printf("is gone");
		else
			print_served(member);
	}
	printf("\n");
}

static void print_subsystem(json_t *subsys)
{
	json_t *host;
	size_t index;

	printf("\n%s  (%s, serial %s)\n", text_of(subsys, "nqn"), text_of(subsys, "model"),
	       text_of(subsys, "serial"));
	if (json_object_get(subsys, "state"))
		printf("  state in %s\n", text_of(subsys, "state"));
	if (json_is_true(json_object_get(subsys, "lost")))
		printf("  NOT SERVED: this target is not a member any more (see its log); start it "
		       "again\n");
	else if (json_object_get(subsys, "cluster"))
		print_cluster(json_object_get(subsys, "cluster"));
	if (json_is_true(json_object_get(subsys, "allow_any_host")))
		printf("  any host may connect\n");
	else if (!json_array_size(json_object_get(subsys, "hosts")))
		printf("  no host may connect (host-allow adds one)\n");
	json_array_foreach(json_object_get(subsys, "hosts"), index, host)
		printf("  host %s\n", json_string_value(host));
	print_namespaces(json_object_get(subsys, "namespaces"));
	print_ports(json_object_get(subsys, "ports"));
	print_controllers(json_object_get(subsys, "controllers"));
}

static void print_discovery(json_t *discovery)
{
	json_t *list = json_object_get(discovery, "controllers");

	if (!json_array_size(list))
		return;
	printf("\ndiscovery service\n");
	print_controllers(list);
}

/* A flood of connections shows here. */
static void print_unknown(json_t *list)
{
	long long now = 0, most = 0, displaced = 0;
	json_t *reactor;
	size_t index;

	json_array_foreach(list, index, reactor) {
		now += weft_json_number(reactor, "unknown");
		most += weft_json_number(reactor, "unknown_max");
		displaced += weft_json_number(reactor, "displaced");
	}
	if (now || displaced)
		printf("connections without Connect: %lld of at most %lld, %lld closed for others\n",
		       now, most, displaced);
}

static void print_queues(json_t *queues)
{
	printf("\nqueues: %lld of at most %lld, %lld of them of the discovery service\n",
	       (long long)weft_json_number(queues, "taken"),
	       (long long)weft_json_number(queues, "max"),
	       (long long)weft_json_number(queues, "discovery"));
}

static void print_reactors(json_t *list)
{
	json_t *reactor;
	size_t index;

	printf("connections by CPU:");
	json_array_foreach(list, index, reactor)
		printf(" %lld:%lld", (long long)weft_json_number(reactor, "cpu"),
		       (long long)weft_json_number(reactor, "queues"));
	printf("\n");
}

void weft_ctl_print_status(json_t *status)
{
	json_t *subsys;
	size_t index;

	print_head(status);
	json_array_foreach(json_object_get(status, "subsystems"), index, subsys)
		print_subsystem(subsys);
	print_discovery(json_object_get(status, "discovery"));
	print_queues(json_object_get(status, "queues"));
	print_unknown(json_object_get(status, "reactors"));
	print_reactors(json_object_get(status, "reactors"));
}
