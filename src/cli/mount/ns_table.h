/* ns_table.h - the files of the mounted directory: one per active namespace. */
#ifndef WEFT_CLI_MOUNT_NS_TABLE_H
#define WEFT_CLI_MOUNT_NS_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/id_hash.h"
#include "base/list.h"
#include "cli/path_wait.h"
#include "volume/volume.h"

enum { WEFT_MOUNT_NODES_MAX = 16384 }; /* of the directory: some 2 KiB each */

/* A namespace, for as long as the directory, the kernel or an open file refers to it. One that
 * takes the place of another under the same nsid is another node. */
struct weft_mount_node {
	struct weft_list link;  /* table->nodes, ordered by nsid, or table->gone */
	struct weft_id_node id; /* table->by_nsid, while it is on table->nodes */
	uint32_t nsid;
	uint64_t generation; /* no two nodes have the same */
	char name[16];       /* "ns1" */
	struct weft_volume *volume;
	_Atomic time_t written; /* last, through us */
	/* Of the thread that reads events, while weft_volume_conn_for_each() shows it the node. */
	struct weft_path_wait path_wait;
	uint64_t refs;
};

struct weft_mount_table {
	pthread_mutex_t lock;
	struct weft_list nodes;
	struct weft_id_hash by_nsid;
	struct weft_list gone; /* from the directory, and still referred to */
	struct weft_volume_conn *conn;
	uint64_t generation;

	/* The scanning thread's. */
	unsigned room;     /* how many ids a list has room for */
	unsigned left_out; /* namespaces of the controller beyond WEFT_MOUNT_NODES_MAX */
};

void weft_mount_table_init(struct weft_mount_table *table, struct weft_volume_conn *conn);
/* Nobody uses a node any more; references are ignored. */
void weft_mount_table_destroy(struct weft_mount_table *table);

/* Updates the table to the controller's namespaces. From one thread at a time. A namespace that the
 * library still sees is not identified again. */
int weft_mount_table_rescan(struct weft_mount_table *table, struct weft_err *err);

/* Both take a reference; NULL: there is none. */
struct weft_mount_node *weft_mount_table_find(struct weft_mount_table *table, const char *name);
struct weft_mount_node *weft_mount_table_next(struct weft_mount_table *table,
					      uint32_t nsid); /* the first above @nsid */

void weft_mount_node_get(struct weft_mount_table *table, struct weft_mount_node *node);
void weft_mount_node_put(struct weft_mount_table *table, struct weft_mount_node *node,
			 uint64_t refs);

#endif
