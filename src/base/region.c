/* region.c - the registry: regions in the order of their addresses, and copies of that order. */
#include "base/region_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct weft_region_view all; /* under the lock; what the others are copies of */
static _Atomic uint64_t generation; /* of @all; moves under the lock */
atomic_uint weft_region_dmabufs;

void weft_regions_lock(void)
{
	pthread_mutex_lock(&registry);
}

void weft_regions_unlock(void)
{
	pthread_mutex_unlock(&registry);
}

static int copy_all(struct weft_region_view *view)
{
	if (weft_view_room(view, all.count) < 0)
		return -ENOMEM;
	if (all.count)
		memcpy(view->sorted, all.sorted, all.count * sizeof(*all.sorted));
	view->count = all.count;
	view->last = 0;
	view->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	return 0;
}

int weft_view_refresh(struct weft_region_view *view)
{
	int rc;

	if (view->generation == atomic_load_explicit(&generation, memory_order_acquire))
		return 0;
	weft_regions_lock();
	rc = copy_all(view);
	weft_regions_unlock();
	return rc;
}

/* --- coming and going -------------------------------------------------------------------------------- */

static void region_free(struct weft_region *region)
{
	if (region->fd >= 0)
		close(region->fd);
	pthread_mutex_destroy(&region->lock);
	free(region->pins);
	free(region);
}

static void region_freep(struct weft_region **region)
{
	if (*region)
		region_free(*region);
}

static struct weft_region *region_new(char *base, size_t size, size_t granule)
{
	size_t granules = granule ? (size - 1) / granule + 1 : 1;
	struct weft_region *region = calloc(1, sizeof(*region));

	assert(!(granule & (granule - 1)));
	if (!region)
		return NULL;
	region->base = base;
	region->size = size;
	region->granule = granule;
	region->fd = -1;
	pthread_mutex_init(&region->lock, NULL);
	weft_list_init(&region->attached);
	region->pins = calloc((granules - 1) / 64 + 1, sizeof(*region->pins));
	if (!region->pins) {
		region_free(region);
		return NULL;
	}
	return region;
}

/* Under the registry's lock. */
static int insert(struct weft_region *region)
{
	unsigned i = weft_view_before(&all, region->base);

	if (weft_view_meets(&all, i, region->base, region->size))
		return -EEXIST;
	if (weft_view_room(&all, all.count + 1) < 0)
		return -ENOMEM;
	memmove(&all.sorted[i + 1], &all.sorted[i], (all.count - i) * sizeof(*all.sorted));
	all.sorted[i] = (struct weft_region_span){ region->base, region->size, region->kind,
						   region };
	all.count++;
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	return 0;
}

/* On 0 @region is the registry's. */
static int publish(struct weft_region *region, struct weft_err *err)
{
	bool dmabuf = region->kind == WEFT_REGION_DMABUF;
	int rc;

	weft_regions_lock();
	rc = insert(region);
	if (rc == 0 && dmabuf)
		atomic_fetch_add(&weft_region_dmabufs, 1);
	weft_regions_unlock();
	if (rc == 0)
		return 0;
	return weft_fail(err, rc, "%zu bytes of memory at %p: %s", region->size,
			 (void *)region->base,
			 rc == -EEXIST ? "some of them are declared already" : strerror(-rc));
}

static int check_range(const void *base, size_t size, struct weft_err *err)
{
	if (base && size && size <= UINTPTR_MAX - (uintptr_t)base)
		return 0;
	return weft_fail(err, -EINVAL, "%zu bytes of memory at %p: there is no such memory", size,
			 base);
}

int weft_region_add(struct weft_region **out, void *base, size_t size, size_t granule,
		    struct weft_err *err)
{
	_cleanup_(region_freep) struct weft_region *region = NULL;
	int rc = check_range(base, size, err);

	if (rc < 0)
		return rc;
	region = region_new(base, size, granule);
	if (!region)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = publish(region, err);
	if (rc == 0)
		*out = take_ptr(&region);
	return rc;
}

int weft_region_add_dmabuf(struct weft_region **out, void *base, size_t size, int fd,
			   uint64_t offset, struct weft_err *err)
{
	_cleanup_(region_freep) struct weft_region *region = NULL;
	int rc = check_range(base, size, err);

	if (rc < 0)
		return rc;
	region = region_new(base, size, 0);
	if (!region)
		return weft_fail(err, -ENOMEM, "out of memory");
	region->kind = WEFT_REGION_DMABUF;
	region->fd_offset = offset;
	region->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (region->fd < 0)
		return weft_fail(err, -errno, "dma-buf %d: %s", fd, strerror(errno));
	rc = publish(region, err);
	if (rc == 0)
		*out = take_ptr(&region);
	return rc;
}

void weft_region_remove(struct weft_region *region)
{
	unsigned i;

	if (!region)
		return;
	weft_regions_lock();
	i = weft_view_before(&all, region->base);
	assert(i < all.count && all.sorted[i].region == region);
	all.count--;
	memmove(&all.sorted[i], &all.sorted[i + 1], (all.count - i) * sizeof(*all.sorted));
	if (region->kind == WEFT_REGION_DMABUF)
		atomic_fetch_sub(&weft_region_dmabufs, 1);
	/* It may take long, and nobody looks for this one: views go on without the lock meanwhile. */
	weft_region_untie(region, NULL);
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	weft_regions_unlock();
	region_free(region);
}

struct weft_region *weft_region_at(const void *base)
{
	struct weft_region *region = NULL;
	unsigned i;

	weft_regions_lock();
	i = weft_view_before(&all, base);
	if (i < all.count && all.sorted[i].base == base)
		region = all.sorted[i].region;
	weft_regions_unlock();
	return region;
}

void weft_regions_untie_owner(const void *owner)
{
	assert(owner);
	weft_regions_lock();
	for (unsigned i = 0; i < all.count; i++)
		weft_region_untie(all.sorted[i].region, owner);
	weft_regions_unlock();
}
