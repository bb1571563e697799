/* region.c - the registry of regions: a list sorted by address, of which threads have copies.
 *
 * The removal of a region and that of an owner both undo registrations, without the lock, perhaps
 * at the same time. Each takes the registrations that it finds, and then waits for those that the
 * other one is undoing: when it returns no registration is left. */
#include "memory/region_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t deregistered = PTHREAD_COND_INITIALIZER;
static struct weft_region_view all; /* under the lock; the others are copies of it */
static unsigned removals; /* regions that are off @all and whose registrations are not all undone */
static _Atomic uint64_t generation; /* of @all; changes under the lock */
atomic_uint weft_region_dmabufs;

static void regions_lock(void)
{
	pthread_mutex_lock(&registry);
}

static void regions_unlock(void)
{
	pthread_mutex_unlock(&registry);
}

static int copy_all(struct weft_region_view *view)
{
	if (weft_region_view_reserve(view, all.count) < 0)
		return -ENOMEM;
	if (all.count)
		memcpy(view->sorted, all.sorted, all.count * sizeof(*all.sorted));
	view->count = all.count;
	view->last = 0;
	view->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	return 0;
}

int weft_region_view_refresh(struct weft_region_view *view)
{
	int rc;

	if (view->generation == atomic_load_explicit(&generation, memory_order_acquire))
		return 0;
	regions_lock();
	rc = copy_all(view);
	regions_unlock();
	return rc;
}

/* --- add and remove --------------------------------------------------------------------------- */

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
	struct weft_region *region = calloc(1, sizeof(*region));

	assert(!(granule & (granule - 1)));
	if (!region)
		return NULL;
	region->base = base;
	region->size = size;
	region->granule = granule ? granule : size;
	region->fd = -1;
	pthread_mutex_init(&region->lock, NULL);
	weft_list_init(&region->registrations);
	region->pins = calloc(weft_region_granules(region), sizeof(*region->pins));
	if (!region->pins) {
		region_free(region);
		return NULL;
	}
	return region;
}

/* Under the registry's lock. */
static int registry_insert(struct weft_region *region)
{
	unsigned i = weft_region_view_lower_bound(&all, region->base);

	if (weft_region_view_overlaps(&all, i, region->base, region->size))
		return -EEXIST;
	if (weft_region_view_reserve(&all, all.count + 1) < 0)
		return -ENOMEM;
	memmove(&all.sorted[i + 1], &all.sorted[i], (all.count - i) * sizeof(*all.sorted));
	all.sorted[i] = (struct weft_region_span){ region->base, region->size, region->kind,
						   region };
	all.count++;
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	return 0;
}

/* On 0 the registry owns @region. */
static int registry_add(struct weft_region *region, struct weft_err *err)
{
	bool dmabuf = region->kind == WEFT_REGION_DMABUF;
	int rc;

	regions_lock();
	rc = registry_insert(region);
	if (rc == 0 && dmabuf)
		atomic_fetch_add(&weft_region_dmabufs, 1);
	regions_unlock();
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
	rc = registry_add(region, err);
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
	rc = registry_add(region, err);
	if (rc == 0)
		*out = take_ptr(&region);
	return rc;
}

/* Under the registry's lock. */
static void registry_remove(struct weft_region *region)
{
	unsigned i = weft_region_view_lower_bound(&all, region->base);

	assert(i < all.count && all.sorted[i].region == region);
	all.count--;
	memmove(&all.sorted[i], &all.sorted[i + 1], (all.count - i) * sizeof(*all.sorted));
	if (region->kind == WEFT_REGION_DMABUF)
		atomic_fetch_sub(&weft_region_dmabufs, 1);
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

void weft_region_remove(struct weft_region *region)
{
	struct weft_region_registration *reg;

	if (!region)
		return;
	regions_lock();
	registry_remove(region);
	removals++;
	regions_unlock();
	while ((reg = weft_region_detach_registration(region, NULL)))
		reg->deregister(reg, region);
	regions_lock();
	removals--;
	pthread_cond_broadcast(&deregistered);
	while (region->deregistering)
		pthread_cond_wait(&deregistered, &registry);
	regions_unlock();
	region_free(region);
}

struct weft_region *weft_region_at(const void *base)
{
	struct weft_region *region = NULL;
	unsigned i;

	regions_lock();
	i = weft_region_view_lower_bound(&all, base);
	if (i < all.count && all.sorted[i].base == base)
		region = all.sorted[i].region;
	regions_unlock();
	return region;
}

/* The owner's registration to the first region that ends behind *@from, which advances. NULL: no
 * more. */
static struct weft_region_registration *next_registration(const void *owner, const char **from,
							  struct weft_region **region)
{
	struct weft_region_registration *reg = NULL;
	unsigned i = weft_region_view_lower_bound(&all, *from);

	for (; i < all.count && !reg; i++) {
		*region = all.sorted[i].region;
		*from = all.sorted[i].base + all.sorted[i].size;
		reg = weft_region_detach_registration(*region, owner);
	}
	return reg;
}

void weft_regions_deregister_owner(const void *owner)
{
	struct weft_region_registration *reg;
	struct weft_region *region;
	const char *from = NULL;

	assert(owner);
	regions_lock();
	while ((reg = next_registration(owner, &from, &region))) {
		region->deregistering++;
		regions_unlock();
		reg->deregister(reg, region);
		regions_lock();
		region->deregistering--;
		pthread_cond_broadcast(&deregistered);
	}
	while (removals)
		pthread_cond_wait(&deregistered, &registry);
	regions_unlock();
}
