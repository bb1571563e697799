/* answers.c - completions that the adapter comes for.
 *
 * A completion is small, and most adapters take it along with the work request. Some do not, and
 * soft iWARP does not where the SEND invalidates a key as well: then it lies here until it has
 * left. */
#include <errno.h>

#include "transport/rdma/rdma.h"

enum { ANSWER_BYTES = 64 };

static void nobody_waits(void *arg)
{
}

int rdma_answers_init(struct rdma_answers *answers)
{
	size_t size = (size_t)ANSWER_BYTES * RDMA_ANSWERS;
	int rc = weft_pool_init(&answers->pool, ANSWER_BYTES, RDMA_ANSWERS, nobody_waits, NULL);

	if (rc < 0)
		return rc;
	rc = weft_region_add(&answers->region, answers->pool.base, size, size, NULL);
	if (rc < 0)
		weft_pool_destroy(&answers->pool);
	return rc;
}

void rdma_answers_end(struct rdma_answers *answers)
{
	weft_region_remove(answers->region);
	weft_pool_destroy(&answers->pool);
}

int rdma_answer_take(struct rdma_lane *lane, struct rdma_req *rreq, struct ibv_sge *sge)
{
	struct nvme_cqe *at = weft_pool_take(&lane->answers.pool);
	struct ibv_mr *mr;

	if (!at)
		return -ENOMEM;
	rreq->answer = at;
	if (!rdma_keys_find(&lane->keys, at, sizeof(*at), &mr)) {
		rdma_answer_give(lane, rreq);
		return -ENOMEM;
	}
	*at = rreq->req.cqe;
	*sge = (struct ibv_sge){ (uintptr_t)at, sizeof(*at), mr->lkey };
	return 0;
}

void rdma_answer_give(struct rdma_lane *lane, struct rdma_req *rreq)
{
	if (rreq->answer)
		weft_pool_give(&lane->answers.pool, rreq->answer);
	rreq->answer = NULL;
}
