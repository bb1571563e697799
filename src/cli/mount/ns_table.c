/* ns_table.c - the files of the mounted directory: one per active namespace.
 *
 *   nodes   1 2   4 5 …       in the order of their nsids, as the controller lists them: one walk
 *   listed  1   3 4 5 …       along both drops 2, adds 3 and leaves the others in place
 *
 * Invariant: a node on the list has one reference for that, and no other node there has its
 * nsid. */
#include "cli/mount/ns_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NSIDS_FIRST 1024 /* asked for at first; more if there are more */

void weft_mount_table_init(struct weft_mount_table *table, struct weft_volume_conn *conn)
{
	*table = (struct weft_mount_table){ .conn = conn, .room = NSIDS_FIRST };
	pthread_mutex_init(&table->lock, NULL);
	weft_list_init(&table->nodes);
	weft_id_hash_init(&table->by_nsid);
	weft_list_init(&table->gone);
}

static void node_free(struct weft_mount_node *node)
{
	weft_volume_close(node->volume);
	free(node);
}

void weft_mount_table_destroy(struct weft_mount_table *table)
{
	struct weft_mount_node *node, *next;

	weft_list_splice(&table->gone, &table->nodes);
	weft_list_for_each_safe(node, next, &table->gone, link)
		node_free(node);
	weft_id_hash_free(&table->by_nsid);
	pthread_mutex_destroy(&table->lock);
}

void weft_mount_node_get(struct weft_mount_table *table, struct weft_mount_node *node)
{
	pthread_mutex_lock(&table->lock);
	node->refs++;
	pthread_mutex_unlock(&table->lock);
}

void weft_mount_node_put(struct weft_mount_table *table, struct weft_mount_node *node,
			 uint64_t refs)
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

/* Under table->lock, or by the scanning thread. NULL: there is none. */
static struct weft_mount_node *find_node(const struct weft_mount_table *table, uint32_t nsid)
{
	struct weft_id_node *id = weft_id_hash_find(&table->by_nsid, nsid);

	return id ? container_of(id, struct weft_mount_node, id) : NULL;
}

static struct weft_mount_node *node_at(const struct weft_mount_table *table,
				       const struct weft_list *link)
{
	return link == &table->nodes ? NULL : container_of(link, struct weft_mount_node, link);
}

/* Only a name as we write it: "ns01" is none. */
struct weft_mount_node *weft_mount_table_find(struct weft_mount_table *table, const char *name)
{
	struct weft_mount_node *node;

	if (strncmp(name, "ns", 2))
		return NULL;
	pthread_mutex_lock(&table->lock);
	node = find_node(table, (uint32_t)strtoul(name + 2, NULL, 10));
	if (node && strcmp(node->name, name))
		node = NULL;
	if (node)
		node->refs++;
	pthread_mutex_unlock(&table->lock);
	return node;
}

/* A listing continues behind the last entry, if that still exists. */
static struct weft_mount_node *next_node(const struct weft_mount_table *table, uint32_t nsid)
{
	struct weft_mount_node *node = nsid ? find_node(table, nsid) : NULL;

	if (node)
		return node_at(table, node->link.next);
	weft_list_for_each(node, &table->nodes, link) {
		if (node->nsid > nsid)
			return node;
	}
	return NULL;
}

struct weft_mount_node *weft_mount_table_next(struct weft_mount_table *table, uint32_t nsid)
{
	struct weft_mount_node *node;

	pthread_mutex_lock(&table->lock);
	node = next_node(table, nsid);
	if (node)
		node->refs++;
	pthread_mutex_unlock(&table->lock);
	return node;
}

/* --- scanning --------------------------------------------------------------------------------- */

/* Before @next, or last. */
static int insert_node(struct weft_mount_table *table, struct weft_mount_node *node,
		       struct weft_mount_node *next)
{
	int rc;

	pthread_mutex_lock(&table->lock);
	rc = weft_id_hash_add(&table->by_nsid, &node->id, node->nsid);
	if (rc == 0)
		weft_list_push(next ? &next->link : &table->nodes, &node->link);
	pthread_mutex_unlock(&table->lock);
	return rc;
}

/* Returns the one behind it. */
static struct weft_mount_node *drop_node(struct weft_mount_table *table,
					 struct weft_mount_node *node)
{
	struct weft_mount_node *next = node_at(table, node->link.next);

	pthread_mutex_lock(&table->lock);
	weft_id_hash_remove(&table->by_nsid, &node->id);
	weft_list_remove(&node->link);
	weft_list_push(&table->gone, &node->link);
	pthread_mutex_unlock(&table->lock);
	weft_mount_node_put(table, node, 1);
	return next;
}

static int add_node(struct weft_mount_table *table, uint32_t nsid, struct weft_volume *volume,
		    struct weft_mount_node *next)
{
	struct weft_mount_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	node->nsid = nsid;
	node->volume = volume;
	node->generation = ++table->generation;
	node->refs = 1;
	node->written = time(NULL);
	snprintf(node->name, sizeof(node->name), "ns%u", node->nsid);
	weft_volume_set_user(volume, node);
	rc = insert_node(table, node, next);
	if (rc < 0) {
		weft_volume_set_user(volume, NULL);
		free(node);
	}
	return rc;
}

/* Where a node would have to be, is none. */
static int open_new_ns(struct weft_mount_table *table, uint32_t nsid, struct weft_mount_node *next,
		       struct weft_err *err)
{
	struct weft_volume *volume;
	int rc = weft_volume_open(table->conn, nsid, &volume, err);

	if (rc < 0)
		return rc;
	rc = add_node(table, nsid, volume, next);
	if (rc < 0)
		weft_volume_close(volume);
	return rc;
}

static int revalidate_node(struct weft_mount_table *table, struct weft_mount_node *node,
			   struct weft_err *err)
{
	struct weft_volume *volume;
	uint32_t nsid = node->nsid;
	int rc;

	if (weft_volume_is_visible(node->volume))
		return 0;
	rc = weft_volume_open(table->conn, nsid, &volume, err);
	if (rc < 0) {
		if (rc == -ENODEV) /* else, who knows */
			drop_node(table, node);
		return rc;
	}
	if (weft_volume_is_same(node->volume, volume)) {
		weft_volume_close(volume);
		return 0;
	}
	rc = add_node(table, nsid, volume, drop_node(table, node));
	if (rc < 0)
		weft_volume_close(volume);
	return rc;
}

/* The ids of all active namespaces; the caller frees them. */
static int list_active_nsids(struct weft_mount_table *table, uint32_t **nsids, struct weft_err *err)
{
	int n;

	for (;;) {
		*nsids = calloc(table->room, sizeof(uint32_t));
		if (!*nsids)
			return -ENOMEM;
		n = weft_volume_conn_list_ns(table->conn, *nsids, table->room, err);
		if (n >= 0 && (unsigned)n <= table->room)
			return n;
		free(take_ptr(nsids));
		if (n < 0)
			return n;
		table->room = (unsigned)n + NSIDS_FIRST;
	}
}

/* Of those that are listed, the ones that are wanted and fit, in place. */
static unsigned filter_nsids(struct weft_mount_table *table, uint32_t *nsids, unsigned n)
{
	uint32_t only = weft_volume_conn_info(table->conn)->nsid;

	table->left_out = 0;
	for (unsigned i = 0; only && i < n; i++) {
		if (nsids[i] == only) {
			nsids[0] = only;
			return 1;
		}
	}
	if (only)
		return 0;
	table->left_out = n > WEFT_MOUNT_NODES_MAX ? n - WEFT_MOUNT_NODES_MAX : 0;
	return n - table->left_out;
}

/* A namespace that cannot be identified, for example because it goes meanwhile, is left out; the
 * first cause is reported. */
static int merge_nsids(struct weft_mount_table *table, const uint32_t *nsids, unsigned n,
		       struct weft_err *err)
{
	struct weft_mount_node *node = node_at(table, table->nodes.next), *found;
	int rc = 0, one;

	for (unsigned i = 0; i < n; i++) {
		while (node && node->nsid < nsids[i])
			node = drop_node(table, node);
		if (node && node->nsid == nsids[i]) {
			found = node;
			node = node_at(table, node->link.next);
			one = revalidate_node(table, found, err);
		} else {
			one = open_new_ns(table, nsids[i], node, err);
		}
		rc = rc ? rc : one;
	}
	while (node)
		node = drop_node(table, node);
	return rc;
}

int weft_mount_table_rescan(struct weft_mount_table *table, struct weft_err *err)
{
	_cleanup_(weft_freep) uint32_t *nsids = NULL;
	int n = list_active_nsids(table, &nsids, err);

	return n < 0 ? n : merge_nsids(table, nsids, filter_nsids(table, nsids, (unsigned)n), err);
}
