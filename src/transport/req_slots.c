/* req_slots.c - memory for requests, shared by the queue pairs of a reactor.
 *
 *   slot   0  1  2  3  …          first free ─▶ the next command of any connection
 *   used   1  1  0  1  …
 *
 * A thousand connections that are served one after the other use the same few slots, the lowest
 * ones, which stay in the cache and the TLB. A block of slots is address space, reserved when a
 * queue pair comes that may need it; memory is used as slots are. What a burst has used is given
 * back, 64 slots at a time, a while after the last of these is free: the lowest SLOTS_KEPT stay, so
 * that a usual load has nothing to do with it.
 *
 * Invariant: a bit of a block's @full is set when the 64 slots of that word of its @used are, and one
 * of @idle when these were all free once, and their memory was not given back since. */
#include "transport/req_slots.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/pool.h"
#include "transport/transport.h"

enum { WORD = 64, BLOCK = WORD * WORD };
enum {
	SLOTS_KEPT = 16 * WORD,
	TRIM_BLOCKS = 512, /* that a trim looks at … */
	TRIM_WORDS = 64,   /* … and groups of slots that it gives back, in one call */
};

struct slot_block {
	char *base;
	uint64_t full, idle, used[WORD];
};

static int add_block(struct weft_req_slots *slots)
{
	struct slot_block *blocks = realloc(slots->blocks, (slots->nblocks + 1) * sizeof(*blocks));
	char *base = weft_pages_alloc(slots->size * BLOCK);

	if (blocks)
		slots->blocks = blocks;
	if (!blocks || !base) {
		weft_pages_free(base, slots->size * BLOCK);
		return -ENOMEM;
	}
	blocks[slots->nblocks++] = (struct slot_block){ .base = base };
	return 0;
}

int weft_req_slots_reserve(struct weft_req_slots *slots, size_t count)
{
	assert(slots->size && slots->size % WORD == 0);
	while (slots->nblocks * BLOCK < slots->reserved + count)
		if (add_block(slots) < 0)
			return -ENOMEM;
	slots->reserved += count;
	return 0;
}

void weft_req_slots_unreserve(struct weft_req_slots *slots, size_t count)
{
	assert(slots->reserved >= count);
	slots->reserved -= count;
}

void weft_req_slots_destroy(struct weft_req_slots *slots)
{
	assert(!slots->reserved);
	for (size_t i = 0; i < slots->nblocks; i++)
		weft_pages_free(slots->blocks[i].base, slots->size * BLOCK);
	free(slots->blocks);
}

static uint32_t lowest_zero_bit(uint64_t word)
{
	return (uint32_t)__builtin_ctzll(~word);
}

/* Sets the lowest 0; true: it was the last. */
static bool set_lowest_zero_bit(uint64_t *word)
{
	*word |= *word + 1;
	return *word == UINT64_MAX;
}

struct weft_req *weft_req_slots_alloc(struct weft_req_slots *slots)
{
	struct slot_block *block = &slots->blocks[slots->first];
	struct weft_req *req;
	uint32_t word, at;

	while (block->full == UINT64_MAX) {
		block = &slots->blocks[++slots->first];
		assert(slots->first < slots->nblocks);
	}
	word = lowest_zero_bit(block->full);
	at = word * WORD + lowest_zero_bit(block->used[word]);
	if (set_lowest_zero_bit(&block->used[word]))
		set_lowest_zero_bit(&block->full);
	req = (struct weft_req *)(block->base + at * slots->size);
	req->slot = (uint32_t)slots->first * BLOCK + at;
	return req;
}

bool weft_req_slots_free(struct weft_req_slots *slots, struct weft_req *req)
{
	struct slot_block *block = &slots->blocks[req->slot / BLOCK];
	uint32_t word = req->slot % BLOCK / WORD;

	assert(block->used[word] >> req->slot % WORD & 1);
	block->used[word] &= ~(UINT64_C(1) << req->slot % WORD);
	block->full &= ~(UINT64_C(1) << word);
	if (req->slot / BLOCK < slots->first)
		slots->first = req->slot / BLOCK;
	if (req->slot < SLOTS_KEPT || block->used[word])
		return false;
	block->idle |= UINT64_C(1) << word;
	if (req->slot / BLOCK < slots->trimmed) /* a trim under way has been there */
		slots->trimmed = req->slot / BLOCK;
	return true;
}

/* --- giving memory back ----------------------------------------------------------------------- */

static void trim_block(const struct weft_req_slots *slots, struct slot_block *block,
		       unsigned *words)
{
	size_t bytes = WORD * slots->size;

	for (; block->idle && *words; block->idle &= block->idle - 1) {
		uint32_t word = (uint32_t)__builtin_ctzll(block->idle);

		if (block->used[word])
			continue;
		weft_pages_discard(block->base + word * bytes, bytes);
		--*words;
	}
}

bool weft_req_slots_trim(struct weft_req_slots *slots)
{
	unsigned words = TRIM_WORDS;

	for (unsigned i = 0; i < TRIM_BLOCKS && slots->trimmed < slots->nblocks; i++) {
		trim_block(slots, &slots->blocks[slots->trimmed], &words);
		if (!words)
			return false;
		slots->trimmed++;
	}
	if (slots->trimmed < slots->nblocks)
		return false;
	slots->trimmed = 0;
	return true;
}
