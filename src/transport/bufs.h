/* bufs.h - buffers in three sizes, for data on its way. */
#ifndef WEFT_TRANSPORT_BUFS_H
#define WEFT_TRANSPORT_BUFS_H

#include "base/pool.h"
#include "memory/region.h"

#define WEFT_MDTS_BYTES (1u << 20)   /* largest data of one command */
#define WEFT_ANON_BYTES (128u << 10) /* of a peer that is not admitted */

enum { WEFT_BUFS_CLASSES = 3 };

/* Each buffer is contiguous, in a region that adapters can register. */
struct weft_bufs {
	int classes; /* sizes that it has */
	struct weft_pool pools[WEFT_BUFS_CLASSES];
	struct weft_region *regions[WEFT_BUFS_CLASSES];
};

/* A tenant's flows: where its requests wait for buffers, of hosts' two sets, by size. Flows take
 * turns. */
struct weft_bufs_flows {
	struct weft_fair_flow in[WEFT_BUFS_CLASSES], out[WEFT_BUFS_CLASSES];
};

/* Of each size up to @largest, what a busy reactor needs, divided by @divisor. @sink: for data that
 * peers send. */
int weft_bufs_init(struct weft_bufs *bufs, uint32_t divisor, uint32_t largest, bool sink,
		   void (*woken)(void *arg), void *arg);
void weft_bufs_destroy(struct weft_bufs *bufs);
uint32_t weft_bufs_largest(const struct weft_bufs *bufs);
/* The pool whose buffers are large enough; @len is at most the largest. */
struct weft_pool *weft_bufs_pool(struct weft_bufs *bufs, uint32_t len);
/* @within: flows that these are a part of; NULL: they take turns with all others. */
void weft_bufs_flows_init(struct weft_bufs_flows *flows, struct weft_bufs_flows *within);
void weft_bufs_serve_waiters(struct weft_bufs *bufs);
bool weft_bufs_has_waiters(const struct weft_bufs *bufs);

#endif
