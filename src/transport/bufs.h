/* bufs.h - buffers in three sizes, for data on its way. */
#ifndef WEFT_TRANSPORT_BUFS_H
#define WEFT_TRANSPORT_BUFS_H

#include "base/pool.h"
#include "base/region.h"

#define WEFT_MDTS_BYTES (1u << 20)   /* largest data of one command */
#define WEFT_ANON_BYTES (128u << 10) /* of a peer that nobody had to let in */

enum { WEFT_BUFS_CLASSES = 3 };

/* Contiguous each, and known to adapters. */
struct weft_bufs {
	int classes; /* of them that there are */
	struct weft_pool pools[WEFT_BUFS_CLASSES];
	struct weft_region *regions[WEFT_BUFS_CLASSES];
};

/* Where those who count as one wait for buffers, of hosts' two sets and by size: lines take turns. */
struct weft_bufs_flows {
	struct weft_turns_line in[WEFT_BUFS_CLASSES], out[WEFT_BUFS_CLASSES];
};

/* As many of each size up to @largest as @share of what a busy reactor needs. @sink: for what peers
 * send. */
int weft_bufs_init(struct weft_bufs *bufs, uint32_t divisor, uint32_t largest, bool sink,
		   void (*woken)(void *arg), void *arg);
void weft_bufs_destroy(struct weft_bufs *bufs);
uint32_t weft_bufs_largest(const struct weft_bufs *bufs);
/* Whose buffers are large enough; @len is at most the largest. */
struct weft_pool *weft_bufs_pool(struct weft_bufs *bufs, uint32_t len);
/* @within NULL: they take turns with all others. */
void weft_bufs_flows_init(struct weft_bufs_flows *flows, struct weft_bufs_flows *within);
void weft_bufs_serve_waiters(struct weft_bufs *bufs);
bool weft_bufs_has_waiters(const struct weft_bufs *bufs); /* somebody waits in line */

#endif
