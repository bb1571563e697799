/* memory.c - weft_memory_*(): the program's side of the registry of memory (memory/region.h), and a
 * check whether a connection can use a dma-buf.
 *
 * A region's mark says which call made it, so that each is undone by the call that goes with it,
 * and regions of other parts of the process cannot be removed. */
#include <weft/memory.h>

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/pool.h"
#include "host/internal.h"
#include "memory/region.h"

static const char allocated[] = "allocated", declared[] = "declared";

/* --- coming and going ------------------------------------------------------------------------- */

static size_t round_up_to_page(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return size > SIZE_MAX - page ? 0 : (size + page - 1) & ~(page - 1);
}

static int alloc_region(size_t size, struct weft_region **region)
{
	void *memory = weft_pages_alloc(size);
	int rc;

	if (!memory)
		return -ENOMEM;
	rc = weft_region_add(region, memory, size, 0, NULL);
	if (rc < 0)
		weft_pages_free(memory, size);
	return rc;
}

void *weft_memory_alloc(size_t size)
{
	struct weft_region *region = NULL;
	size_t whole = round_up_to_page(size);
	int rc = whole ? alloc_region(whole, &region) : size ? -ENOMEM : -EINVAL;

	if (rc < 0) {
		errno = -rc;
		return NULL;
	}
	region->declarer = allocated;
	return region->base;
}

void weft_memory_free(void *memory)
{
	struct weft_region *region;
	size_t size;

	if (!memory)
		return;
	region = weft_region_at(memory);
	assert(region && region->declarer == allocated);
	size = region->size;
	weft_region_remove(region);
	weft_pages_free(memory, size);
}

int weft_memory_register(void *at, size_t size, struct weft_err *err)
{
	struct weft_region *region = NULL;
	int rc = weft_region_add(&region, at, size, 0, err);

	if (rc == 0)
		region->declarer = declared;
	return rc;
}

int weft_memory_import_dmabuf(void *at, size_t size, int fd, uint64_t offset, struct weft_err *err)
{
	struct weft_region *region = NULL;
	int rc = weft_region_add_dmabuf(&region, at, size, fd, offset, err);

	if (rc == 0)
		region->declarer = declared;
	return rc;
}

int weft_memory_unregister(void *at, struct weft_err *err)
{
	struct weft_region *region = weft_region_at(at);

	if (!region || region->declarer != declared)
		return weft_fail(err, -ENOENT, "no memory was registered at %p", at);
	weft_region_remove(region);
	return 0;
}

/* --- what a connection takes ------------------------------------------------------------------ */

static bool iov_is_plain(struct weft_region_view *view, const struct iovec *iov, int iovcnt)
{
	for (int i = 0; i < iovcnt; i++) {
		if (weft_region_overlaps_dmabuf(view, iov[i].iov_base, iov[i].iov_len))
			return false;
	}
	return true;
}

bool host_memory_ok(struct weft_queue *queue, const struct iovec *iov, int iovcnt)
{
	return queue->snap.takes_dmabuf || iov_is_plain(&queue->regions, iov, iovcnt);
}

bool host_memory_is_plain(const struct iovec *iov, int iovcnt)
{
	struct weft_region_view view = { 0 };
	bool plain = !weft_region_any_dmabuf() || iov_is_plain(&view, iov, iovcnt);

	weft_region_view_free(&view);
	return plain;
}
