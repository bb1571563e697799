/* member_namespaces.c - members publish which namespaces they have, and in which size, so that each
 * can warn of one that another lacks or has in another size: hosts would lose it, or see its size
 * change, at a failover to that one.
 *
 *   a namespace comes, goes or is resized ─▶ reconcile: is our record what it should be? ─▶ commit
 *   a record changed, a member came ─▶ does a member lack what another has, or has it another
 *                                      size? ─▶ a warning, once
 *
 * Nobody is refused because of it: a namespace is added or resized on one member after the other,
 * and a member that lacks one is better than none. The record is lines of text, a namespace and its
 * size in bytes, and is valid for one session:
 *
 *   session 7
 *   1 1073741824
 *   2 17179869184
 *
 * A member of an older version writes no record: there is no warning about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/size.h"
#include "target/cluster/cluster.h"

enum { RECORD_MAX = TGT_CLUSTER_NAMESPACES_MAX };

/* What a member has, by nsid - 1; 0: it has no such namespace. */
struct sizes {
	uint64_t of[WEFT_NSID_MAX];
};

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

static uint64_t our_size(struct weft_subsys *s, uint32_t nsid)
{
	const struct tgt_ns *ns = tgt_ns_find(s, nsid);

	return ns ? atomic_load(&ns->blocks) << ns->lba_shift : 0;
}

static uint32_t encode_sizes(struct weft_subsys *s, char bytes[RECORD_MAX])
{
	size_t len = write_head(s, bytes, RECORD_MAX);

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid))
			len += (size_t)snprintf(bytes + len, RECORD_MAX - len, "%u %llu\n", nsid,
						(unsigned long long)our_size(s, nsid));
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
	w->len = encode_sizes(c->subsys, w->bytes);
	return !record || record->len != w->len || memcmp(record->value, w->bytes, w->len);
}

void tgt_cluster_ns_changed(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->cluster && s->cluster->started)
		tgt_cluster_reconcile(s);
}

/* --- records of others ------------------------------------------------------------------------ */

static bool parse_line(const char *line, struct sizes *sizes)
{
	char *at, *end;
	unsigned long nsid = strtoul(line, &at, 10);
	unsigned long long size;

	if (*at != ' ' || !nsid || nsid > WEFT_NSID_MAX)
		return false;
	size = strtoull(at + 1, &end, 10);
	sizes->of[nsid - 1] = size;
	return end != at + 1 && !*end && size;
}

/* Parses the lines behind the first one; false: they are not a record's. */
static bool parse_sizes(char *text, struct sizes *sizes)
{
	char *line, *rest;

	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!parse_line(line, sizes))
			return false;
	return true;
}

/* False: the node has no record. */
static bool decode_sizes(struct weft_subsys *s, unsigned node, struct sizes *sizes)
{
	char key[TGT_CLUSTER_KEY], head[32], text[RECORD_MAX + 1];
	const struct weft_store_record *record;
	size_t len = write_head(s, head, sizeof(head));

	nsids_key(node, key);
	record = weft_store_get(s->store, key);
	memset(sizes, 0, sizeof(*sizes));
	if (!record || record->len > RECORD_MAX || record->len < len ||
	    memcmp(record->value, head, len))
		return false;
	memcpy(text, record->value, record->len);
	text[record->len] = '\0';
	return parse_sizes(text + len, sizes);
}

/* For our own namespaces no record is needed. False: the node is not there, or has no record. */
static bool sizes_of(struct weft_subsys *s, unsigned node, struct sizes *sizes)
{
	if (node != s->cluster->view.self)
		return weft_store_alive(s->store, node) && decode_sizes(s, node, sizes);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		sizes->of[nsid - 1] = our_size(s, nsid);
	return true;
}

/* --- what differs ----------------------------------------------------------------------------- */

/* The members that have a namespace: the first, and those that have it smallest and largest. */
struct holders {
	uint8_t first, smallest, largest; /* nodes; 0: none has it */
	uint64_t min, max;
};

static void add_holder(struct holders *h, unsigned node, uint64_t size)
{
	if (!h->first)
		*h = (struct holders){ .first = (uint8_t)node, .min = UINT64_MAX };
	if (size < h->min) {
		h->min = size;
		h->smallest = (uint8_t)node;
	}
	if (size > h->max) {
		h->max = size;
		h->largest = (uint8_t)node;
	}
}

static void find_holders(struct weft_subsys *s, struct holders holders[WEFT_NSID_MAX])
{
	struct sizes sizes;

	memset(holders, 0, WEFT_NSID_MAX * sizeof(holders[0]));
	for (unsigned node = 1; node <= s->cluster->view.nodes; node++) {
		bool known = sizes_of(s, node, &sizes);

		for (unsigned i = 0; known && i < WEFT_NSID_MAX; i++)
			if (sizes.of[i])
				add_holder(&holders[i], node, sizes.of[i]);
	}
}

static const char *if_here(const struct tgt_cluster *c, unsigned node)
{
	return node == c->view.self ? " (this one)" : "";
}

static void warn_namespace_missing(struct tgt_cluster *c, unsigned node, unsigned i, unsigned who)
{
	weft_warn("%s: node %u%s has no namespace %u, which node %u has; hosts lose it when node %u "
		  "serves its group. Add it there, on the same storage (namespace-add, and the "
		  "configuration), or remove it from the others",
		  c->subsys->nqn, node, if_here(c, node), i + 1, who, node);
}

static void check_lacking(struct tgt_cluster *c, unsigned node,
			  const struct holders holders[WEFT_NSID_MAX])
{
	struct tgt_cluster_nsids *told = &c->lacks[node];
	struct sizes sizes;
	bool known = sizes_of(c->subsys, node, &sizes);

	for (unsigned i = 0; i < WEFT_NSID_MAX; i++) {
		bool lacks = known && holders[i].first && !sizes.of[i];

		if (lacks && !told->has[i])
			warn_namespace_missing(c, node, i, holders[i].first);
		told->has[i] = lacks;
	}
}

static void warn_sizes_differ(struct tgt_cluster *c, unsigned i, const struct holders *h)
{
	char min[32], max[32];

	weft_size_format(h->min, min, sizeof(min));
	weft_size_format(h->max, max, sizeof(max));
	weft_warn("%s: namespace %u has %s on node %u%s and %s on node %u%s; hosts see its size change "
		  "when its group moves. Resize it on every node (namespace-resize, and the "
		  "configuration)",
		  c->subsys->nqn, i + 1, min, h->smallest, if_here(c, h->smallest), max, h->largest,
		  if_here(c, h->largest));
}

static void check_sizes(struct tgt_cluster *c, const struct holders holders[WEFT_NSID_MAX])
{
	for (unsigned i = 0; i < WEFT_NSID_MAX; i++) {
		bool differ = holders[i].min != holders[i].max;

		if (differ && !c->sizes_differ[i])
			warn_sizes_differ(c, i, &holders[i]);
		c->sizes_differ[i] = differ;
	}
}

void tgt_cluster_check_namespaces(struct tgt_cluster *c)
{
	struct holders holders[WEFT_NSID_MAX];

	assert_on_control(c->subsys->target);
	if (c->lacks_revision == c->revision && c->lacks_alive == c->view.alive)
		return;
	c->lacks_revision = c->revision;
	c->lacks_alive = c->view.alive;
	find_holders(c->subsys, holders);
	for (unsigned node = 1; node <= c->view.nodes; node++)
		check_lacking(c, node, holders);
	check_sizes(c, holders);
}

void tgt_cluster_namespaces_info(struct tgt_cluster *c, struct weft_member_info *info)
{
	struct sizes sizes;
	bool known = sizes_of(c->subsys, info->node, &sizes);

	assert_on_control(c->subsys->target);
	for (unsigned i = 0; known && i < WEFT_NSID_MAX; i++)
		if (c->sizes_differ[i])
			info->other_size[i] = sizes.of[i];
}

bool weft_ns_is_everywhere(struct weft_subsys *s, uint32_t nsid)
{
	struct sizes sizes;

	assert_on_control(s->target);
	assert(nsid - 1 < WEFT_NSID_MAX);
	for (unsigned node = 1; s->cluster && node <= s->cluster->view.nodes; node++)
		if (node != s->cluster->view.self && weft_store_alive(s->store, node) &&
		    (!decode_sizes(s, node, &sizes) || sizes.of[nsid - 1] != our_size(s, nsid)))
			return false;
	return true;
}
