/* dev.c - adapters that are in use: a protection domain each, shared by all connections.
 *
 * librdmacm opens every device once per process, so a context stands for a device. */
#include "transport/rdma/dev.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "lock/mutex.h"

static struct weft_mutex lock = WEFT_MUTEX_INITIALIZER;
static struct weft_list devs = { &devs, &devs };

static struct rdma_dev *find_dev(const struct ibv_context *ctx)
{
	struct rdma_dev *dev;

	assert_locked(&lock);
	weft_list_for_each(dev, &devs, link)
		if (dev->ctx == ctx && dev->refs)
			return dev;
	return NULL;
}

static void set_mr_domains(struct rdma_dev *dev)
{
	dev->target = (struct rdma_mr_domain){
		.dev = dev,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	dev->host = (struct rdma_mr_domain){
		.dev = dev,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
}

static int create_dev(struct ibv_context *ctx, struct rdma_dev **out)
{
	struct rdma_dev *dev = calloc(1, sizeof(*dev));
	int rc;

	assert_locked(&lock);
	if (!dev)
		return -ENOMEM;
	dev->ctx = ctx;
	dev->iwarp = ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	rc = -rdma_verbs->query_device(ctx, &dev->attr);
	if (rc == 0) {
		dev->pd = rdma_verbs->alloc_pd(ctx);
		rc = dev->pd ? 0 : -errno;
	}
	if (rc < 0) {
		free(dev);
		return rc;
	}
	dev->invalidates = dev->attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	set_mr_domains(dev);
	weft_list_init(&dev->subscribers);
	weft_list_push(&devs, &dev->link);
	*out = dev;
	return 0;
}

int rdma_dev_get(struct ibv_context *ctx, struct rdma_dev **out, struct weft_err *err)
{
	struct rdma_dev *dev;
	int rc = 0;

	weft_mutex_lock(&lock);
	dev = find_dev(ctx);
	if (!dev)
		rc = create_dev(ctx, &dev);
	if (rc == 0)
		dev->refs++;
	weft_mutex_unlock(&lock);
	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", ctx->device->name, strerror(-rc));
	*out = dev;
	return 0;
}

static bool drop_dev_ref(struct rdma_dev *dev)
{
	bool last;

	weft_mutex_lock(&lock);
	last = !weft_count_down(dev->refs);
	weft_mutex_unlock(&lock);
	return last;
}

/* Deregistering memory takes long, and others get and put adapters meanwhile. A caller that wants
 * this adapter gets another rdma_dev, with a protection domain of its own. */
static void destroy_dev(struct rdma_dev *dev)
{
	assert(!dev->refs && weft_list_empty(&dev->subscribers));
	weft_regions_deregister_owner(&dev->target);
	weft_regions_deregister_owner(&dev->host);
	rdma_verbs->dealloc_pd(dev->pd);
	weft_mutex_lock(&lock);
	weft_list_remove(&dev->link);
	weft_mutex_unlock(&lock);
	free(dev);
}

void rdma_dev_put(struct rdma_dev *dev)
{
	if (dev && drop_dev_ref(dev))
		destroy_dev(dev);
}

/* --- removal ---------------------------------------------------------------------------------- */

/* librdmacm keeps a device open after its last id is gone, and closes removed ones only when it is
 * asked for a list of devices. */
static atomic_bool removed;

void rdma_devs_note_removal(void)
{
	atomic_store(&removed, true);
}

void rdma_devs_release_removed(void)
{
	bool none;

	if (!atomic_load_explicit(&removed, memory_order_relaxed))
		return;
	rdma_verbs->sync_devices();
	weft_mutex_lock(&lock);
	none = weft_list_empty(&devs);
	weft_mutex_unlock(&lock);
	if (none)
		atomic_store(&removed, false);
}
