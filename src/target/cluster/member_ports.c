/* member_ports.c - members publish where they listen, so that each has all addresses in its
 * discovery log.
 *
 *   a listener comes or goes ─▶ reconcile: is our record what it should be? ─▶ commit
 *   another member's record changed ─▶ discovery log changed ─▶ hosts read it again
 *
 * A listener on every address is not published: only a host that came through one of its addresses
 * knows that one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "target/cluster/cluster.h"

static void ports_key(unsigned node, char key[TGT_CLUSTER_KEY])
{
	assert(node && node <= WEFT_NODES_MAX);
	snprintf(key, TGT_CLUSTER_KEY, "listeners/%u", node);
}

static const struct weft_store_record *ports_record(const struct weft_subsys *s, unsigned node)
{
	char key[TGT_CLUSTER_KEY];

	ports_key(node, key);
	return weft_store_get(s->store, key);
}

static void list_own_ports(struct weft_subsys *s, struct ports *ports)
{
	struct tgt_listener *l;

	ports->count = 0;
	weft_list_for_each(l, &s->target->listeners, link)
		if (!weft_addr_is_wildcard(&l->l->addr) && ports->count < PORTS_MAX)
			ports->at[ports->count++] = tgt_listener_port(l);
}

bool tgt_cluster_ports_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w)
{
	const struct weft_store_record *record = ports_record(c->subsys, c->view.self);
	struct ports ports;

	assert_on_control(c->subsys->target);
	list_own_ports(c->subsys, &ports);
	ports_key(c->view.self, w->key);
	w->version = record ? record->version : 0;
	w->len = (uint32_t)ports_encode(&ports, weft_store_session(c->subsys->store), w->bytes);
	return !record || record->len != w->len || memcmp(record->value, w->bytes, w->len);
}

void tgt_cluster_ports_of(const struct weft_subsys *s, unsigned node, struct ports *ports)
{
	const struct weft_store_record *record = ports_record(s, node);

	ports->count = 0;
	if (record)
		ports_decode(ports, weft_store_session(s->store), record->value, record->len);
}

/* Hosts tell ports apart by their ids. */
static void warn_of_same_portids(struct tgt_cluster *c, unsigned node)
{
	struct tgt_listener *l;
	struct ports ports;

	tgt_cluster_ports_of(c->subsys, node, &ports);
	weft_list_for_each(l, &c->subsys->target->listeners, link)
		for (unsigned i = 0; i < ports.count; i++)
			if (ports.at[i].portid == l->portid)
				weft_warn("%s: port id %u is also that of a listener of node %u; "
					  "give one of them another with ?portid=N",
					  c->subsys->nqn, l->portid, node);
}

uint16_t tgt_cluster_first_portid(struct weft_target *t)
{
	struct weft_subsys *s;

	assert_on_control(t);
	weft_list_for_each(s, &t->subsystems, link)
		if (s->cluster)
			return (uint16_t)((s->cluster->view.self - 1) * WEFT_NODE_PORTS + 1);
	return 1;
}

/* True: the node's record differs from the one seen last. */
static bool ports_record_is_new(struct tgt_cluster *c, unsigned node)
{
	const struct weft_store_record *record = ports_record(c->subsys, node);

	if (node == c->view.self || !record || record->version == c->ports_seen[node])
		return false;
	c->ports_seen[node] = record->version;
	return true;
}

void tgt_cluster_ports_mark_seen(struct tgt_cluster *c)
{
	assert_on_control(c->subsys->target);
	for (unsigned node = 1; node <= c->view.nodes; node++)
		ports_record_is_new(c, node);
}

void tgt_cluster_check_ports(struct tgt_cluster *c)
{
	bool changed = false;

	assert_on_control(c->subsys->target);
	for (unsigned node = 1; node <= c->view.nodes; node++) {
		if (!ports_record_is_new(c, node))
			continue;
		changed = true;
		warn_of_same_portids(c, node);
	}
	if (changed)
		tgt_discovery_changed(c->subsys->target);
}

/* --- seen from outside ------------------------------------------------------------------------ */

bool weft_cluster_node_runs(const char *state, unsigned node, char where[WEFT_URI_MAX])
{
	_cleanup_(weft_freep) struct weft_store_peek *peek = malloc(sizeof(*peek));
	char key[TGT_CLUSTER_KEY];
	struct ports ports;

	where[0] = '\0';
	ports_key(node, key);
	if (!peek || !weft_store_peek(state, node, key, peek))
		return false;
	if (!ports_decode(&ports, peek->session, peek->value, peek->len) && ports.count)
		weft_uri_format(ports.at[0].trtype, &ports.at[0].addr, where, WEFT_URI_MAX);
	return true;
}
