/* guard.c - the guard: a readers-writer try-lock over memory. A word per stripe: reader count, a
 * writer bit, a bit for a writer that waits.
 *
 *   offset ─▶ stripe ─▶ word:  [ WRITER │ WRITER_WAITS │ readers ]      far apart, stripes share a word
 *
 * A word costs a reader two atomic operations; stripes are larger than a block, so that a large
 * transfer has few of them. A refused writer marks its words: new readers are refused,
 * those inside leave, and the writer gets in at its next try or the one after. With its success the
 * mark is gone, so readers are next: neither side can starve the other.
 *
 * Invariant: WRITER is set in a word without readers; WRITER_WAITS only while its writer will try
 * again. */
#include "lock/guard.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define STRIPE_BYTES (16u << 10)
#define WORDS        4096u
#define WRITER       (1u << 31)
#define WRITER_WAITS (1u << 30)

static_assert(STRIPE_BYTES % WEFT_BLOCK_MAX == 0, "a block is in one stripe");

struct weft_guard {
	uintptr_t base;
	_Atomic uint32_t words[WORDS];
};

struct words {
	size_t first, count; /* from @first on, around the end */
};

static struct words words_of(const struct weft_guard *guard, const void *at, size_t len)
{
	size_t offset = (uintptr_t)at - guard->base;
	size_t first = offset / STRIPE_BYTES, last = (offset + len - 1) / STRIPE_BYTES;
	size_t count = last - first + 1;

	assert(len);
	return (struct words){ first, count < WORDS ? count : WORDS };
}

static _Atomic uint32_t *word_at(struct weft_guard *guard, struct words w, size_t i)
{
	return &guard->words[(w.first + i) % WORDS];
}

int weft_guard_create(struct weft_guard **out, const void *base)
{
	struct weft_guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return -ENOMEM;
	assert((uintptr_t)base % WEFT_BLOCK_MAX == 0);
	guard->base = (uintptr_t)base;
	*out = guard;
	return 0;
}

void weft_guard_destroy(struct weft_guard *guard)
{
	free(guard);
}

/* --- readers ---------------------------------------------------------------------------------- */

static bool try_read_word(_Atomic uint32_t *word)
{
	uint32_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (!(was & (WRITER | WRITER_WAITS)))
		if (atomic_compare_exchange_weak_explicit(word, &was, was + 1, memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

static void unlock_read_words(struct weft_guard *guard, struct words w)
{
	for (size_t i = 0; i < w.count; i++) {
		uint32_t was = atomic_fetch_sub_explicit(word_at(guard, w, i), 1,
							 memory_order_release);

		assert(was & (WRITER_WAITS - 1) && !(was & WRITER));
		(void)was;
	}
}

bool weft_guard_try_read(struct weft_guard *guard, const void *at, size_t len)
{
	struct words w = words_of(guard, at, len);

	for (size_t i = 0; i < w.count; i++)
		if (!try_read_word(word_at(guard, w, i))) {
			unlock_read_words(guard, (struct words){ w.first, i });
			return false;
		}
	return true;
}

void weft_guard_unlock_read(struct weft_guard *guard, const void *at, size_t len)
{
	unlock_read_words(guard, words_of(guard, at, len));
}

bool weft_guard_writer_waits(struct weft_guard *guard, const void *at, size_t len)
{
	struct words w = words_of(guard, at, len);

	for (size_t i = 0; i < w.count; i++)
		if (atomic_load_explicit(word_at(guard, w, i), memory_order_relaxed) & WRITER_WAITS)
			return true;
	return false;
}

/* --- writers ---------------------------------------------------------------------------------- */

static bool try_write_word(_Atomic uint32_t *word)
{
	uint32_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (!(was & ~WRITER_WAITS))
		if (atomic_compare_exchange_weak_explicit(word, &was, WRITER, memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

static void unlock_write_words(struct weft_guard *guard, struct words w)
{
	for (size_t i = 0; i < w.count; i++) {
		uint32_t was = atomic_fetch_and_explicit(word_at(guard, w, i), ~WRITER,
							 memory_order_release);

		assert(was & WRITER);
		(void)was;
	}
}

/* Marks all words, or a writer of many words would never find them free at the same time. */
static void mark_writer_waits(struct weft_guard *guard, struct words w)
{
	for (size_t i = 0; i < w.count; i++)
		atomic_fetch_or_explicit(word_at(guard, w, i), WRITER_WAITS, memory_order_relaxed);
}

bool weft_guard_try_write(struct weft_guard *guard, const void *at, size_t len)
{
	struct words w = words_of(guard, at, len);

	for (size_t i = 0; i < w.count; i++)
		if (!try_write_word(word_at(guard, w, i))) {
			mark_writer_waits(guard, w);
			unlock_write_words(guard, (struct words){ w.first, i });
			return false;
		}
	return true;
}

void weft_guard_unlock_write(struct weft_guard *guard, const void *at, size_t len)
{
	unlock_write_words(guard, words_of(guard, at, len));
}
