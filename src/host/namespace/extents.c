/* extents.c - which extents of a namespace are allocated (Get LBA Status), and when to believe it.
 *
 *   Get LBA Status ─▶ descriptors of allocated blocks ─▶ data, hole, data …, as far as they go
 *         ├─ not supported, refused, invalid ──────────▶ all of it is data
 *         └─ no path, lost ────────────────────────────▶ a little of it is data; then asked again
 *
 * Data that is reported as a hole would be lost; a hole that is reported as data is only read. So a
 * hole is only what lies between two descriptors that are in order, or behind the last one if the
 * controller says that the list is complete, and only where deallocated blocks read as zeroes. A
 * controller that does not answer this command, or loses its connection each time, is not asked any
 * more.
 *
 * Invariant: every answer covers at least one block, so that a caller who goes on behind it
 * ends. */
#include <errno.h>

#include "host/internal.h"

enum {
	ANSWER = HOST_PAGE, /* bytes */
	DLFEAT_READS = 7,   /* what a deallocated block reads as … */
	DLFEAT_ZEROES = 1,  /* … zeroes */
	RL_MAX = UINT16_MAX,
	LOSSES_MAX = 3,
	DATA_GUESS_MAX = 1 << 20, /* bytes */
};

/* --- an answer -------------------------------------------------------------------------------- */

struct extent_list {
	struct weft_ns_extent *at;
	unsigned count, max;
	uint64_t next; /* the block behind its end */
};

/* Adds an extent up to block @end; false: the list is full. */
static bool append_extent(struct extent_list *extent_list, uint64_t end, bool data)
{
	struct weft_ns_extent *last = extent_list->count ?
					      &extent_list->at[extent_list->count - 1] :
					      NULL;
	uint64_t blocks = end - extent_list->next;

	if (!blocks)
		return true;
	if (last && last->data == data)
		last->length += blocks;
	else if (extent_list->count == extent_list->max)
		return false;
	else
		extent_list->at[extent_list->count++] = (struct weft_ns_extent){ blocks, data };
	extent_list->next = end;
	return true;
}

/* A descriptor may reach beyond the range, on either side: it tells of whole units. */
static bool is_sound(const struct nvme_lba_status_desc *desc, uint64_t behind)
{
	uint64_t first = le64_to_cpu(desc->dslba), blocks = le32_to_cpu(desc->nlb);

	return blocks && first >= behind && first <= UINT64_MAX - blocks;
}

static uint64_t clamp(uint64_t block, uint64_t least, uint64_t most)
{
	return block < least ? least : block > most ? most : block;
}

int host_extents_parse(const struct nvme_lba_status *answer, uint32_t size, uint64_t slba,
		       uint64_t blocks, struct weft_ns_extent *extents, unsigned max)
{
	uint32_t n = le32_to_cpu(answer->nlsd), room = (uint32_t)sizeof(answer->descs[0]);
	struct extent_list extent_list = { .at = extents, .max = max, .next = slba };
	uint64_t end = slba + blocks, behind = 0, first;

	if (n > (size - sizeof(*answer)) / room)
		return -EPROTO;
	for (uint32_t i = 0; i < n; i++) {
		const struct nvme_lba_status_desc *desc = &answer->descs[i];

		if (!is_sound(desc, behind))
			return -EPROTO;
		first = le64_to_cpu(desc->dslba);
		behind = first + le32_to_cpu(desc->nlb);
		if (!append_extent(&extent_list, clamp(first, slba, end), false) ||
		    !append_extent(&extent_list, clamp(behind, slba, end), true))
			return (int)extent_list.count;
	}
	if (answer->cmpc == NVME_CMPC_COMPLETE)
		append_extent(&extent_list, end, false);
	return extent_list.count ? (int)extent_list.count : -EPROTO;
}

/* --- the question ----------------------------------------------------------------------------- */

static bool holes_are_zeroes(struct weft_ns *ns)
{
	uint8_t dlfeat;

	weft_mutex_lock(&ns->ctrl->lock);
	dlfeat = ns->dlfeat;
	weft_mutex_unlock(&ns->ctrl->lock);
	return (dlfeat & DLFEAT_READS) == DLFEAT_ZEROES;
}

/* If the range is too long for RL, RL is 0: to the end of the namespace. */
static int get_lba_status(struct weft_ns *ns, uint64_t slba, uint64_t blocks,
			  struct weft_ns_extent *extents, unsigned max)
{
	union {
		struct nvme_lba_status status;
		char bytes[ANSWER];
	} answer;
	uint16_t rl = blocks <= RL_MAX ? (uint16_t)blocks : 0;
	int rc = host_ns_lba_status(ns, slba, rl, &answer, sizeof(answer));

	return rc < 0 ? rc :
			host_extents_parse(&answer.status, sizeof(answer), slba, blocks, extents,
					   max);
}

static bool lba_status_is_useful(struct weft_ns *ns)
{
	return holes_are_zeroes(ns) && atomic_load(&ns->extents_lost) < LOSSES_MAX;
}

static void note_lba_status_loss(struct weft_ns *ns, int rc)
{
	if (rc == -ECONNRESET)
		atomic_fetch_add(&ns->extents_lost, 1);
	else if (rc == -ETIMEDOUT)
		atomic_store(&ns->extents_lost, LOSSES_MAX);
}

static bool lba_status_may_come_later(int rc)
{
	return rc == -EAGAIN || rc == -ECONNRESET;
}

static int check_extent_range(struct weft_ns *ns, uint64_t offset, uint64_t length, unsigned max,
			      struct weft_err *err)
{
	uint64_t mask = (1ull << ns->block_shift) - 1, size = atomic_load(&ns->size);
	int rc = atomic_load(&ns->rc);

	if (!length || !max || (offset | length) & mask)
		return weft_fail(
			err, -EINVAL,
			"extents are asked for in blocks of %llu bytes, and of one at least",
			(unsigned long long)mask + 1);
	if (offset > size || length > size - offset)
		return weft_fail(err, -ERANGE, "beyond the end of the namespace");
	if (rc == -ESTALE || rc == -ENODEV)
		return weft_fail(err, rc, "namespace %u is not there any more", ns->nsid);
	return 0;
}

int weft_ns_extents(struct weft_ns *ns, uint64_t offset, uint64_t length,
		    struct weft_ns_extent *extents, unsigned max, struct weft_err *err)
{
	unsigned shift = ns->block_shift;
	int n = check_extent_range(ns, offset, length, max, err);

	if (n < 0)
		return n;
	if (lba_status_is_useful(ns))
		n = get_lba_status(ns, offset >> shift, length >> shift, extents, max);
	for (int i = 0; i < n; i++)
		extents[i].length <<= shift;
	if (n > 0)
		return n;
	note_lba_status_loss(ns, n);
	if (lba_status_may_come_later(n) && length > DATA_GUESS_MAX)
		length = DATA_GUESS_MAX;
	extents[0] = (struct weft_ns_extent){ length, true };
	return 1;
}
