/* table.c - the files of the directory: one per active namespace.
 *
 * Invariant: a node on the list has one reference for that, and its nsid is nobody else's there. */
#include "cli/mount/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define NSIDS_FIRST 256 /* asked for at first; more if there are more */

void weft_table_init(struct weft_table *table, struct weft_uplink *uplink)
{
	*table = (struct weft_table){ .uplink = uplink };
	pthread_mutex_init(&table->lock, NULL);
	weft_list_init(&table->nodes);
	weft_list_init(&table->gone);
}

static void node_free(struct weft_node *node)
{
	weft_volume_close(node->bytes.volume);
	weft_ranges_destroy(&node->bytes.busy);
	free(node);
}

void weft_table_destroy(struct weft_table *table)
{
	struct weft_node *node, *next;

	weft_list_splice(&table->gone, &table->nodes);
	weft_list_for_each_safe(node, next, &table->gone, link)
		node_free(node);
	pthread_mutex_destroy(&table->lock);
}

void weft_node_get(struct weft_table *table, struct weft_node *node)
{
	pthread_mutex_lock(&table->lock);
	node->refs++;
	pthread_mutex_unlock(&table->lock);
}

void weft_node_put(struct weft_table *table, struct weft_node *node, uint64_t refs)
{
	bool last;

	pthread_mutex_lock(&table->lock);
	node->refs -= refs;
	last = !node->refs;
	if (last)
		weft_list_remove(&node->link);
	pthread_mutex_unlock(&table->lock);
	if (last)
		node_free(node);
}

struct weft_node *weft_table_find(struct weft_table *table, const char *name)
{
	struct weft_node *node, *found = NULL;

	pthread_mutex_lock(&table->lock);
	weft_list_for_each(node, &table->nodes, link) {
		if (!strcmp(node->name, name)) {
			found = node;
			found->refs++;
			break;
		}
	}
	pthread_mutex_unlock(&table->lock);
	return found;
}

struct weft_node *weft_table_next(struct weft_table *table, uint32_t nsid)
{
	struct weft_node *node, *found = NULL;

	pthread_mutex_lock(&table->lock);
	weft_list_for_each(node, &table->nodes, link) {
		if (node->nsid > nsid) {
			found = node;
			found->refs++;
			break;
		}
	}
	pthread_mutex_unlock(&table->lock);
	return found;
}

/* --- scanning --------------------------------------------------------------------------------- */

static struct weft_node *node_of(struct weft_table *table, uint32_t nsid)
{
	struct weft_node *node;

	weft_list_for_each(node, &table->nodes, link) {
		if (node->nsid == nsid)
			return node;
	}
	return NULL;
}

static void insert(struct weft_table *table, struct weft_node *node)
{
	struct weft_node *at;

	pthread_mutex_lock(&table->lock);
	weft_list_for_each(at, &table->nodes, link) {
		if (at->nsid > node->nsid)
			break;
	}
	weft_list_push(&at->link, &node->link); /* before @at, or last */
	pthread_mutex_unlock(&table->lock);
}

static void drop(struct weft_table *table, struct weft_node *node)
{
	pthread_mutex_lock(&table->lock);
	weft_list_remove(&node->link);
	weft_list_push(&table->gone, &node->link);
	pthread_mutex_unlock(&table->lock);
	weft_node_put(table, node, 1);
}

static int add(struct weft_table *table, struct weft_volume *volume)
{
	struct weft_node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->nsid = volume->info.nsid;
	node->generation = ++table->generation;
	node->refs = 1;
	node->found = true;
	node->written = time(NULL);
	node->bytes = (struct weft_bytes){ .volume = volume,
					   .block_size = volume->info.block_size,
					   .can_zero = table->uplink->info.can_zero };
	weft_ranges_init(&node->bytes.busy);
	snprintf(node->name, sizeof(node->name), "ns%u", node->nsid);
	insert(table, node);
	return 0;
}

static int look_at(struct weft_table *table, uint32_t nsid, struct weft_err *err)
{
	struct weft_node *node = node_of(table, nsid);
	struct weft_volume *volume;
	int rc = weft_volume_open(table->uplink, nsid, &volume, err);

	if (rc < 0) {
		if (node && rc != -ENODEV) /* who knows */
			node->found = true;
		return rc;
	}
	if (node && weft_volume_is(node->bytes.volume, volume)) {
		node->found = true;
		weft_volume_close(volume);
		return 0;
	}
	if (node)
		drop(table, node);
	rc = add(table, volume);
	if (rc < 0)
		weft_volume_close(volume);
	return rc;
}

/* The ids of all active namespaces; the caller frees them. */
static int list_all(struct weft_uplink *uplink, uint32_t **nsids, struct weft_err *err)
{
	unsigned max = NSIDS_FIRST;
	int n;

	for (;;) {
		*nsids = calloc(max, sizeof(uint32_t));
		if (!*nsids)
			return -ENOMEM;
		n = weft_uplink_list(uplink, *nsids, max, err);
		if (n >= 0 && (unsigned)n <= max)
			return n;
		free(take_ptr(nsids));
		if (n < 0)
			return n;
		max = (unsigned)n;
	}
}

static void drop_lost(struct weft_table *table)
{
	struct weft_node *node, *next;

	weft_list_for_each_safe(node, next, &table->nodes, link) {
		if (!node->found)
			drop(table, node);
	}
}

/* A namespace that cannot be looked at, as one that goes meanwhile, is left out; the first cause
 * is told. */
int weft_table_scan(struct weft_table *table, struct weft_err *err)
{
	_cleanup_(weft_freep) uint32_t *nsids = NULL;
	int n = list_all(table->uplink, &nsids, err), rc = 0, one;
	uint32_t only = table->uplink->info.nsid;
	struct weft_node *node;

	if (n < 0)
		return n;
	weft_list_for_each(node, &table->nodes, link)
		node->found = false;
	for (int i = 0; i < n; i++) {
		if (only && nsids[i] != only)
			continue;
		one = look_at(table, nsids[i], err);
		rc = rc ? rc : one;
	}
	drop_lost(table);
	return rc;
}
