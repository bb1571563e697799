/* disk.h - a descriptor that holds a namespace: what files and block devices have in common. */
#ifndef WEFT_BACKEND_DISK_H
#define WEFT_BACKEND_DISK_H

#include "backend/internal.h"
#include "reactor/workers.h"

struct weft_disk {
	struct weft_backend be;
	int fd;
	char *path;
	struct weft_workers searcher; /* a thread, from the first request for extents on */
};

static inline struct weft_disk *weft_disk_of(struct weft_backend *be)
{
	assert(!be->next); /* not a filter */
	return container_of(be, struct weft_disk, be);
}

/* Owns *@fd on success, and then sets it to -1. */
int weft_disk_new(struct weft_disk **disk, int *fd, const struct weft_spec *spec, uint64_t size,
		  uint32_t block_min, struct weft_err *err);

int weft_disk_submit(struct weft_backend *be, struct weft_io *io);
int weft_disk_descriptor(struct weft_backend *be);
void weft_disk_close(struct weft_backend *be);

/* disk_lock.c: locks as @spec says, for us alone or as one node of a cluster. -EBUSY: others have
 * it. */
int weft_disk_lock(int fd, const struct weft_spec *spec);
bool weft_disk_node_active(struct weft_backend *be, unsigned node);
int weft_disk_lock_as(struct weft_backend *be, uint64_t as, uint64_t *other);

/* The sentence for an open() that failed with @rc. */
int weft_disk_open_failed(const struct weft_spec *spec, int rc, struct weft_err *err);

/* For a sync that is not an io: reports its failure. */
void weft_disk_sync_failed(struct weft_disk *disk, int rc);

#endif
