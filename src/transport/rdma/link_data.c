/* link_data.c - describes a command's data to the controller (SGL).
 *
 *   small, on its way out ─────────▶ in the capsule, gathered by the adapter
 *   registered memory ─────────────▶ a keyed descriptor; a list of them in the capsule, where the
 *                                    controller takes that
 *   anything else ─────────────────▶ copied through a bounce buffer, and counted
 *
 * Memory is registered here only when rdma_mr_cache_find() meets it for the first time. */
#include <assert.h>
#include <string.h>

#include "transport/rdma/link.h"

struct piece {
	char *at;
	size_t len;
	struct ibv_mr *mr;
};

/* --- the data in pieces ----------------------------------------------------------------------- */

static bool is_contiguous(const struct piece *last, const char *at, const struct ibv_mr *mr)
{
	return last->mr == mr && last->at + last->len == at;
}

/* Pieces of [@at, @at + @len), behind the @n that are there; -1: too many, or unknown memory. */
static int add_pieces(struct rdma_link *rl, struct piece *pieces, int n, int max, char *at,
		      size_t len)
{
	struct ibv_mr *mr;
	size_t covered;

	while (len) {
		covered = rdma_mr_cache_find(&rl->mrs, at, len, &mr);
		if (!covered)
			return -1;
		if (n && is_contiguous(&pieces[n - 1], at, mr))
			pieces[n - 1].len += covered;
		else if (n == max)
			return -1;
		else
			pieces[n++] = (struct piece){ at, covered, mr };
		at += covered;
		len -= covered;
	}
	return n;
}

static int find_pieces(struct rdma_link *rl, const struct weft_link_slot *slot,
		       struct piece *pieces, int max)
{
	struct weft_iov_iter iter = slot->data;
	struct iovec part;
	int n = 0;

	for (size_t left = slot->data_len; left && n >= 0; left -= part.iov_len) {
		part = weft_iov_iter_next(&iter, left);
		n = add_pieces(rl, pieces, n, max, part.iov_base, part.iov_len);
	}
	return n;
}

static void copy_bounce(struct rdma_link *rl, struct rdma_link_slot *rs, bool out)
{
	const struct weft_link_slot *slot = &rs->slot;
	struct weft_iov_iter iter = slot->data;
	char *buf = rs->bounce;
	struct iovec part;

	for (size_t left = slot->data_len; left; left -= part.iov_len, buf += part.iov_len) {
		part = weft_iov_iter_next(&iter, left);
		if (out)
			memcpy(buf, part.iov_base, part.iov_len);
		else
			memcpy(part.iov_base, buf, part.iov_len);
	}
	rl->link.stats.copied_bytes += slot->data_len;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void set_sgl(struct rdma_link_slot *rs, uint8_t type, uint32_t length)
{
	rs->slot.cmd.common.sgl = (struct nvme_sgl){ .length = cpu_to_le32(length), .type = type };
}

static void put_in_capsule(struct rdma_link_slot *rs, const struct piece *pieces, int n)
{
	assert(n > 0 && 1 + n <= RDMA_LINK_SGES);
	set_sgl(rs, NVME_SGL_IN_CAPSULE, rs->slot.data_len);
	for (int i = 0; i < n; i++)
		rs->sge[1 + i] = (struct ibv_sge){ (uintptr_t)pieces[i].at, (uint32_t)pieces[i].len,
						   pieces[i].mr->lkey };
	rs->nsge = 1 + n;
}

static void set_keyed_sgl(struct rdma_link_slot *rs, const struct piece *pieces, int n)
{
	struct nvme_keyed_sgl *blocks = rs->capsule->blocks;

	assert(n > 0 && n <= RDMA_LINK_BLOCKS);
	if (n == 1)
		blocks = (struct nvme_keyed_sgl *)&rs->slot.cmd.common.sgl;
	for (int i = 0; i < n; i++)
		nvme_keyed_sgl_set(&blocks[i], (uintptr_t)pieces[i].at, (uint32_t)pieces[i].len,
				   pieces[i].mr->rkey);
	if (n == 1)
		return;
	set_sgl(rs, NVME_SGL_LAST_IN_CAPSULE, (uint32_t)n * sizeof(*blocks));
	rs->capsule_len += (uint32_t)n * (uint32_t)sizeof(*blocks);
}

static bool goes_out(const struct weft_link_slot *slot)
{
	return nvme_cmd_direction(&slot->cmd) == NVME_DIR_TO_CTRL;
}

static bool fits_capsule(const struct rdma_link *rl, const struct weft_link_slot *slot)
{
	return goes_out(slot) && slot->data_len <= rl->link.capsule_max;
}

static int blocks_max(const struct rdma_link *rl)
{
	uint32_t most = rl->link.blocks_max, room = rl->link.capsule_max / 16;

	if (most > RDMA_LINK_BLOCKS)
		most = RDMA_LINK_BLOCKS;
	if (most > 1 && most > room)
		most = room;
	return most ? (int)most : 1;
}

static bool map_pieces(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	bool inside = fits_capsule(rl, &rs->slot);
	struct piece pieces[RDMA_LINK_BLOCKS];
	int n = find_pieces(rl, &rs->slot, pieces, inside ? (int)rl->sges - 1 : blocks_max(rl));

	if (n < 0)
		return false;
	if (inside)
		put_in_capsule(rs, pieces, n);
	else
		set_keyed_sgl(rs, pieces, n);
	return true;
}

/* --- bounce buffers --------------------------------------------------------------------------- */

static void use_bounce_buffer(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	struct piece piece = { rs->bounce, rs->slot.data_len, NULL };

	if (!rdma_mr_cache_find(&rl->mrs, rs->bounce, rs->slot.data_len, &piece.mr)) {
		weft_link_close(&rl->link, rl->mrs.failed ? rl->mrs.failed : -ENOMEM,
				"the adapter does not register memory for data; see ulimit -l");
		return;
	}
	if (goes_out(&rs->slot))
		copy_bounce(rl, rs, true);
	else
		memset(rs->bounce, 0, rs->slot.data_len); /* the controller may write less */
	if (fits_capsule(rl, &rs->slot))
		put_in_capsule(rs, &piece, 1);
	else
		set_keyed_sgl(rs, &piece, 1);
	rdma_link_send(rl, rs);
}

static void bounce_buffer_available(struct weft_pool_waiter *waiter, void *at)
{
	struct rdma_link_slot *rs = container_of(waiter, struct rdma_link_slot, waiter);

	assert(!rs->bounce && rs->state == RDMA_SLOT_PREPARING);
	rs->bounce = at;
	use_bounce_buffer(rdma_link_of(rs->slot.link), rs);
}

/* The CPU cannot copy a device's memory. */
static bool meets_dmabuf(struct rdma_link *rl, const struct weft_link_slot *slot)
{
	struct weft_iov_iter iter = slot->data;
	bool meets = false;
	struct iovec part;

	if (!weft_region_any_dmabuf())
		return false;
	for (size_t left = slot->data_len; left && !meets; left -= part.iov_len) {
		part = weft_iov_iter_next(&iter, left);
		meets = weft_region_overlaps_dmabuf(&rl->mrs.view, part.iov_base, part.iov_len);
	}
	return meets;
}

static void map_bounce_buffer(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	assert(!rs->pool && !rs->bounce);
	rs->pool = weft_bufs_pool(&rl->bufs, rs->slot.data_len);
	rs->bounce = weft_pool_take(rs->pool);
	if (rs->bounce) {
		use_bounce_buffer(rl, rs);
		return;
	}
	rs->waiter.got = bounce_buffer_available;
	weft_pool_wait(rs->pool, NULL, &rs->waiter);
}

void rdma_link_map_data(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	struct nvme_keyed_sgl *sgl = (struct nvme_keyed_sgl *)&rs->slot.cmd.common.sgl;

	rs->capsule_len = sizeof(rs->capsule->sqe);
	rs->nsge = 1;
	if (!rs->slot.data_len) {
		nvme_keyed_sgl_set(sgl, 0, 0, 0);
		rdma_link_send(rl, rs);
	} else if (map_pieces(rl, rs)) {
		rdma_link_send(rl, rs);
	} else if (meets_dmabuf(rl, &rs->slot)) {
		rdma_link_refuse(rl, rs);
	} else {
		map_bounce_buffer(rl, rs);
	}
	rl->link.stats.key_hits = rl->mrs.hits;
	rl->link.stats.registrations = rl->mrs.registrations;
}

static bool brought_data(const struct weft_link_slot *slot)
{
	return nvme_cmd_direction(&slot->cmd) == NVME_DIR_TO_HOST &&
	       !(le16_to_cpu(slot->cqe.status) >> 1);
}

void rdma_link_unmap_data(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	if (rs->bounce && brought_data(&rs->slot))
		copy_bounce(rl, rs, false);
	rdma_link_put_buffer(rl, rs);
}

void rdma_link_put_buffer(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	if (rs->bounce)
		weft_pool_give(rs->pool, rs->bounce);
	else if (rs->pool && rs->waiter.link.next)
		weft_pool_cancel_wait(&rs->waiter);
	rs->bounce = NULL;
	rs->pool = NULL;
}
