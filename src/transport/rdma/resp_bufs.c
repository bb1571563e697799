/* resp_bufs.c - response buffers: CQEs that the adapter fetches itself.
 *
 * A CQE is 16 bytes, and most adapters take it inline with the SEND. Some cannot, and soft iWARP
 * cannot for SEND with invalidate: then the adapter reads the CQE from one of these buffers. */
#include <assert.h>
#include <errno.h>

#include "transport/rdma/rdma.h"

enum { RESP_BUF_BYTES = 64 };

static void nobody_waits(void *arg)
{
}

int rdma_resp_bufs_init(struct rdma_resp_bufs *resp_bufs)
{
	size_t size = (size_t)RESP_BUF_BYTES * RDMA_RESP_BUFS_MAX;
	int rc = weft_pool_init(&resp_bufs->pool, RESP_BUF_BYTES, RDMA_RESP_BUFS_MAX, nobody_waits,
				NULL);

	if (rc < 0)
		return rc;
	rc = weft_region_add(&resp_bufs->region, resp_bufs->pool.base, size, size, NULL);
	if (rc < 0)
		weft_pool_destroy(&resp_bufs->pool);
	return rc;
}

void rdma_resp_bufs_destroy(struct rdma_resp_bufs *resp_bufs)
{
	weft_region_remove(resp_bufs->region);
	weft_pool_destroy(&resp_bufs->pool);
}

int rdma_resp_buf_get(struct rdma_poller *poller, struct rdma_req *rreq, struct ibv_sge *sge)
{
	struct nvme_cqe *at = weft_pool_take(&poller->resp_bufs.pool);
	struct ibv_mr *mr;

	if (!at)
		return -ENOMEM;
	assert(!rreq->resp_buf);
	rreq->resp_buf = at;
	if (!rdma_mr_cache_find(&poller->mrs, at, sizeof(*at), &mr)) {
		rdma_resp_buf_put(poller, rreq);
		return -ENOMEM;
	}
	*at = rreq->req.cqe;
	*sge = (struct ibv_sge){ (uintptr_t)at, sizeof(*at), mr->lkey };
	return 0;
}

void rdma_resp_buf_put(struct rdma_poller *poller, struct rdma_req *rreq)
{
	if (rreq->resp_buf)
		weft_pool_give(&poller->resp_bufs.pool, rreq->resp_buf);
	rreq->resp_buf = NULL;
}
