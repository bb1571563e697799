/* recvs.c - receives: memory for capsules, created as connections come, posted, filled, posted
 * again.
 *
 *   idle ──end of the turn──▶ posted ──▶ a command ──▶ idle
 *                                          └─ with data in it: held until it is answered ─▶ idle
 *
 * Commands lie side by side, their data on pages of its own, as storage likes it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/rdma/rdma.h"

enum { POST_BATCH = 32, GRANULE = 1 << 20, RETRY_MS = 100 };

static size_t commands_size(const struct rdma_recvs *recvs)
{
	return ((size_t)recvs->room * RDMA_COMMAND + 4095) & ~(size_t)4095;
}

static size_t pages_size(const struct rdma_recvs *recvs)
{
	return commands_size(recvs) + (size_t)recvs->room * RDMA_CAPSULE_DATA;
}

/* --- posting ---------------------------------------------------------------------------------- */

static int fill_recv_wr(struct rdma_recvs *recvs, struct rdma_recv *recv, struct ibv_recv_wr *wr,
			struct ibv_sge *sge)
{
	struct ibv_mr *command, *data;

	if (!rdma_mr_cache_find(recvs->mrs, recv->sqe, RDMA_COMMAND, &command) ||
	    !rdma_mr_cache_find(recvs->mrs, recv->data, RDMA_CAPSULE_DATA, &data))
		return -ENOMEM;
	sge[0] = (struct ibv_sge){ (uintptr_t)recv->sqe, RDMA_COMMAND, command->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)recv->data, RDMA_CAPSULE_DATA, data->lkey };
	*wr = (struct ibv_recv_wr){ .wr_id = (uintptr_t)recv, .sg_list = sge, .num_sge = 2 };
	return 0;
}

static void recv_make_idle(struct rdma_recvs *recvs, struct rdma_recv *recv)
{
	recv->next = recvs->idle;
	recvs->idle = recv;
}

/* Receives that the adapter refuses are idle again. */
static int post_recv_chain(struct rdma_recvs *recvs, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad = wr;
	int rc = recvs->srq ? rdma_verbs->post_srq_recv(recvs->srq, wr, &bad) :
			      rdma_verbs->post_recv(recvs->qp, wr, &bad);

	for (; rc && bad; bad = bad->next)
		recv_make_idle(recvs, (struct rdma_recv *)(uintptr_t)bad->wr_id);
	return -abs(rc); /* soft iWARP's provider returns -errno */
}

static int post_recv_batch(struct rdma_recvs *recvs)
{
	struct ibv_recv_wr wr[POST_BATCH];
	struct ibv_sge sge[POST_BATCH][2];
	int n = 0, rc = 0;

	while (recvs->idle && n < POST_BATCH && rc == 0) {
		rc = fill_recv_wr(recvs, recvs->idle, &wr[n], sge[n]);
		if (rc < 0)
			break;
		recvs->idle = recvs->idle->next;
		if (n)
			wr[n - 1].next = &wr[n];
		n++;
	}
	return n ? post_recv_chain(recvs, wr) : rc;
}

static int post_idle_recvs(struct rdma_recvs *recvs)
{
	int rc = 0;

	while (recvs->idle && rc == 0)
		rc = post_recv_batch(recvs);
	return rc;
}

void rdma_recvs_post(struct rdma_recvs *recvs)
{
	bool told = recvs->failing;
	int rc;

	if (weft_heap_has(&recvs->retry_timer.node))
		return;
	rc = post_idle_recvs(recvs);
	recvs->failing = rc < 0;
	if (rc == 0)
		return;
	weft_timer_set(recvs->reactor, &recvs->retry_timer, RETRY_MS);
	if (!told)
		recvs->failed(recvs, rc);
}

static void post_recvs_at_turn_end(struct weft_task *task)
{
	rdma_recvs_post(container_of(task, struct rdma_recvs, post));
}

static void retry_post_recvs(struct weft_timer *timer)
{
	struct rdma_recvs *recvs = container_of(timer, struct rdma_recvs, retry_timer);

	rdma_mr_cache_retry_refused(recvs->mrs);
	rdma_recvs_post(recvs);
}

void rdma_recv_put(struct rdma_recv *recv)
{
	struct rdma_recvs *recvs = recv->owner;

	assert(recv >= recvs->recvs && recv < recvs->recvs + recvs->made);
	recv_make_idle(recvs, recv);
	if (recvs->srq || recvs->qp)
		weft_reactor_defer(recvs->reactor, &recvs->post);
}

int rdma_recvs_grow(struct rdma_recvs *recvs, uint32_t count)
{
	assert_on(recvs->reactor);
	if (count > recvs->room)
		count = recvs->room;
	for (; recvs->made < count; recvs->made++) {
		struct rdma_recv *recv = &recvs->recvs[recvs->made];

		recv->owner = recvs;
		recv->sqe = (union nvme_sqe *)(recvs->pages + (size_t)recvs->made * RDMA_COMMAND);
		recv->data = recvs->pages + commands_size(recvs) +
			     (size_t)recvs->made * RDMA_CAPSULE_DATA;
		recv_make_idle(recvs, recv);
	}
	return post_idle_recvs(recvs);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int init_srq(struct rdma_recvs *recvs, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = recvs->room, .max_sge = 2 } };

	recvs->srq = rdma_verbs->create_srq(pd, &attr);
	return recvs->srq ? 0 : -errno;
}

static int alloc_receives(struct rdma_recvs *recvs)
{
	recvs->recvs = calloc(recvs->room, sizeof(recvs->recvs[0]));
	recvs->pages = weft_pages_alloc(pages_size(recvs));
	if (!recvs->recvs || !recvs->pages)
		return -ENOMEM;
	return weft_region_add(&recvs->region, recvs->pages, pages_size(recvs), GRANULE, NULL);
}

int rdma_recvs_init(struct rdma_recvs *recvs, struct rdma_mr_cache *mrs, struct weft_reactor *r,
		    uint32_t room, struct ibv_pd *pd, struct weft_err *err)
{
	int rc;

	assert_on(r);
	assert(room && recvs->failed && !recvs->made);
	recvs->mrs = mrs;
	recvs->reactor = r;
	recvs->room = room;
	recvs->retry_timer.fn = retry_post_recvs;
	weft_task_init(&recvs->post, post_recvs_at_turn_end);
	rc = alloc_receives(recvs);
	if (rc == 0 && pd)
		rc = init_srq(recvs, pd);
	if (rc == 0)
		return 0;
	rdma_recvs_end(recvs);
	return weft_fail(err, rc, "receives: %s", strerror(-rc));
}

void rdma_recvs_stop(struct rdma_recvs *recvs)
{
	recvs->qp = NULL;
	weft_task_cancel(&recvs->post);
	weft_timer_stop(recvs->reactor, &recvs->retry_timer);
}

/* The adapter holds none of them any more. */
void rdma_recvs_end(struct rdma_recvs *recvs)
{
	assert(!recvs->held);
	rdma_recvs_stop(recvs);
	if (recvs->srq)
		rdma_verbs->destroy_srq(recvs->srq);
	weft_region_remove(recvs->region);
	weft_pages_free(recvs->pages, pages_size(recvs));
	free(recvs->recvs);
}
