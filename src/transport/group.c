/* group.c - the buffers that the queue pairs of one reactor share. */
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"
#include "transport/tcp/tcp.h"

static const struct {
	uint32_t size, count;
} classes[WEFT_BUFS_CLASSES] = {
	{ 8u << 10, 2048 },
	{ 128u << 10, 512 },
	{ WEFT_MDTS_BYTES, 128 },
};

static int bufs_init(struct weft_bufs *bufs)
{
	for (int i = 0; i < WEFT_BUFS_CLASSES; i++) {
		int rc = weft_pool_init(&bufs->pools[i], classes[i].size, classes[i].count);

		if (rc < 0) {
			while (i--)
				weft_pool_destroy(&bufs->pools[i]);
			return rc;
		}
	}
	return 0;
}

static void bufs_destroy(struct weft_bufs *bufs)
{
	for (int i = 0; i < WEFT_BUFS_CLASSES; i++)
		weft_pool_destroy(&bufs->pools[i]);
}

int weft_group_create(struct weft_group **out, struct weft_reactor *r, unsigned index,
		      uint32_t depth_max, uint32_t qpairs_max)
{
	struct weft_group *group = calloc(1, sizeof(*group));
	int rc;

	if (!group)
		return -ENOMEM;
	group->reactor = r;
	group->index = index;
	group->depth_max = depth_max;
	weft_list_init(&group->qpairs);
	rc = bufs_init(&group->in);
	if (rc < 0)
		goto free_group;
	rc = bufs_init(&group->out);
	if (rc < 0)
		goto destroy_in;
	rc = weft_pool_init(&group->chunks, TCP_CHUNK_BYTES, tcp_chunks_for(qpairs_max));
	if (rc < 0)
		goto destroy_out;
	*out = group;
	return 0;

destroy_out:
	bufs_destroy(&group->out);
destroy_in:
	bufs_destroy(&group->in);
free_group:
	free(group);
	return rc;
}

void weft_group_destroy(struct weft_group *group)
{
	weft_pool_destroy(&group->chunks);
	bufs_destroy(&group->out);
	bufs_destroy(&group->in);
	free(group);
}

void weft_group_close_all(struct weft_group *group, const char *why)
{
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link)
		weft_qpair_close(qp, "%s", why);
}
