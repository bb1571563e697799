/* member_namespaces.c - members publish which namespaces they have, so that each can warn of one
 * that another lacks: hosts would lose it at a failover to that one.
 *
 *   a namespace comes or goes ─▶ reconcile: is our record what it should be? ─▶ commit
 *   a record changed, a member came ─▶ does a member lack what another has? ─▶ a warning, once
 *
 * Nobody is refused because of it: a namespace is added to one member after the other, and a member
 * that lacks one is better than none. The record is lines of text, and is valid for one session:
 *
 *   session 7
 *   1
 *   2
 *
 * A member of an older version writes no record: there is no warning about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/cluster/cluster.h"

enum { RECORD_MAX = 32 + WEFT_NSID_MAX * sizeof("1024") };
static_assert((int)RECORD_MAX <= (int)PORTS_RECORD_MAX, "the list fits");

static void nsids_key(unsigned node, char key[TGT_CLUSTER_KEY])
{
	assert(node && node <= WEFT_NODES_MAX);
	snprintf(key, TGT_CLUSTER_KEY, "namespaces/%u", node);
}

static size_t write_head(const struct weft_subsys *s, char *bytes, size_t size)
{
	return (size_t)snprintf(bytes, size, "session %llu\n",
				(unsigned long long)weft_store_session(s->store));
}

/* --- our record ------------------------------------------------------------------------------- */

static uint32_t encode_nsids(struct weft_subsys *s, char bytes[RECORD_MAX])
{
	size_t len = write_head(s, bytes, RECORD_MAX);

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid))
			len += (size_t)snprintf(bytes + len, RECORD_MAX - len, "%u\n", nsid);
	assert(len < RECORD_MAX);
	return (uint32_t)len;
}

bool tgt_cluster_namespaces_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w)
{
	const struct weft_store_record *record;

	assert_on_control(c->subsys->target);
	nsids_key(c->view.self, w->key);
	record = weft_store_get(c->subsys->store, w->key);
	w->version = record ? record->version : 0;
	w->len = encode_nsids(c->subsys, w->bytes);
	return !record || record->len != w->len || memcmp(record->value, w->bytes, w->len);
}

void tgt_cluster_ns_changed(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->cluster && s->cluster->started)
		tgt_cluster_reconcile(s);
}

/* --- records of others ------------------------------------------------------------------------ */

/* Parses the lines behind the first one; false: they are not a record's. */
static bool parse_nsids(char *text, struct tgt_cluster_nsids *nsids)
{
	char *line, *rest, *end;

	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long nsid = strtoul(line, &end, 10);

		if (*end || !nsid || nsid > WEFT_NSID_MAX)
			return false;
		nsids->has[nsid - 1] = true;
	}
	return true;
}

/* False: the node has no record. */
static bool decode_nsids(struct weft_subsys *s, unsigned node, struct tgt_cluster_nsids *nsids)
{
	char key[TGT_CLUSTER_KEY], head[32], text[RECORD_MAX + 1];
	const struct weft_store_record *record;
	size_t len = write_head(s, head, sizeof(head));

	nsids_key(node, key);
	record = weft_store_get(s->store, key);
	memset(nsids, 0, sizeof(*nsids));
	if (!record || record->len > RECORD_MAX || record->len < len ||
	    memcmp(record->value, head, len))
		return false;
	memcpy(text, record->value, record->len);
	text[record->len] = '\0';
	return parse_nsids(text + len, nsids);
}

/* For our own namespaces no record is needed. */
static bool namespaces_of(struct weft_subsys *s, unsigned node, struct tgt_cluster_nsids *nsids)
{
	if (node != s->cluster->view.self)
		return weft_store_alive(s->store, node) && decode_nsids(s, node, nsids);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		nsids->has[nsid - 1] = tgt_ns_find(s, nsid);
	return true;
}

/* By nsid - 1: a member that has it; 0: none does. */
static void find_owners_of_nsids(struct weft_subsys *s, uint8_t who[WEFT_NSID_MAX])
{
	struct tgt_cluster_nsids nsids;

	memset(who, 0, WEFT_NSID_MAX);
	for (unsigned node = s->cluster->view.nodes; node; node--) {
		bool known = namespaces_of(s, node, &nsids);

		for (unsigned i = 0; known && i < WEFT_NSID_MAX; i++)
			if (nsids.has[i])
				who[i] = (uint8_t)node;
	}
}

static void warn_namespace_missing(struct tgt_cluster *c, unsigned node, unsigned i, unsigned who)
{
	bool here = node == c->view.self;

	weft_warn("%s: node %u%s has no namespace %u, which node %u has; hosts lose it when node %u "
		  "serves its group. Add it there, on the same storage (namespace-add, and the "
		  "configuration), or remove it from the others",
		  c->subsys->nqn, node, here ? " (this one)" : "", i + 1, who, node);
}

static void check_member(struct tgt_cluster *c, unsigned node, const uint8_t who[WEFT_NSID_MAX])
{
	struct tgt_cluster_nsids nsids, *told = &c->lacks[node];
	bool known = namespaces_of(c->subsys, node, &nsids);

	for (unsigned i = 0; i < WEFT_NSID_MAX; i++) {
		bool lacks = known && who[i] && !nsids.has[i];

		if (lacks && !told->has[i])
			warn_namespace_missing(c, node, i, who[i]);
		told->has[i] = lacks;
	}
}

void tgt_cluster_check_namespaces(struct tgt_cluster *c)
{
	uint8_t who[WEFT_NSID_MAX];

	assert_on_control(c->subsys->target);
	if (c->lacks_revision == c->revision && c->lacks_alive == c->view.alive)
		return;
	c->lacks_revision = c->revision;
	c->lacks_alive = c->view.alive;
	find_owners_of_nsids(c->subsys, who);
	for (unsigned node = 1; node <= c->view.nodes; node++)
		check_member(c, node, who);
}
