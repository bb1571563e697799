/* stamp.c - the stamp: header and generated body in every block that --verify writes. */
#include "bench/stamp.h"

#include <endian.h>
#include <isa-l/crc.h>
#include <stddef.h>
#include <string.h>

#include "bench/random.h"

#define MAGIC UINT64_C(0x6b636f6c42746657) /* "WftBlock" */

struct stamp_header {
	uint64_t magic, run, offset, generation; /* little endian, all of them */
	uint32_t size, crc;
	uint64_t body[];
};

uint32_t bench_stamp_words(uint32_t size)
{
	return (uint32_t)((size - sizeof(struct stamp_header)) / sizeof(uint64_t));
}

/* What the words of the body are counted from. */
static uint64_t body_key(uint64_t run, uint64_t offset, uint32_t generation)
{
	return bench_mix(run + bench_mix(offset + BENCH_GOLDEN * generation));
}

static uint64_t body_word(uint64_t key, uint32_t i)
{
	return htole64(bench_mix(key + BENCH_GOLDEN * i));
}

static uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	return ~crc32_iscsi((unsigned char *)data, (int)length, ~crc);
}

/* As if the field of the sum were 0. */
static uint32_t sum(const void *block, uint32_t size)
{
	const size_t at = offsetof(struct stamp_header, crc), body = sizeof(struct stamp_header);
	uint32_t zero = 0, crc;

	crc = crc32c(0, block, at);
	crc = crc32c(crc, &zero, sizeof(zero));
	return crc32c(crc, (const char *)block + body, size - body);
}

void bench_stamp_fill(void *block, uint32_t size, uint64_t run, uint64_t offset,
		      uint32_t generation)
{
	uint64_t key = body_key(run, offset, generation);
	uint32_t words = bench_stamp_words(size);
	struct stamp_header *h = block;

	*h = (struct stamp_header){ .magic = htole64(MAGIC),
				    .run = htole64(run),
				    .offset = htole64(offset),
				    .generation = htole64(generation),
				    .size = htole32(size) };
	for (uint32_t i = 0; i < words; i++)
		h->body[i] = body_word(key, i);
	h->crc = htole32(sum(block, size));
}

static bool all_zero(const unsigned char *block, uint32_t size)
{
	return !block[0] && !memcmp(block, block + 1, size - 1);
}

static bool intact(const struct stamp_header *h, uint32_t size)
{
	return le32toh(h->size) == size && le32toh(h->crc) == sum(h, size);
}

void bench_stamp_look(const void *block, uint32_t size, uint64_t run, struct bench_stamp_view *view)
{
	const struct stamp_header *h = block;

	view->run = le64toh(h->run);
	view->offset = le64toh(h->offset);
	view->generation = (uint32_t)le64toh(h->generation);
	if (le64toh(h->magic) != MAGIC)
		view->what = all_zero(block, size) ? BENCH_STAMP_ZEROES : BENCH_STAMP_NONE;
	else if (view->run != run)
		view->what = intact(h, size) ? BENCH_STAMP_OTHER : BENCH_STAMP_NONE;
	else
		view->what = intact(h, size) ? BENCH_STAMP_GOOD : BENCH_STAMP_DAMAGED;
}

uint32_t bench_stamp_alike(const void *block, uint32_t size, uint64_t run, uint64_t offset,
			   uint32_t generation)
{
	uint64_t key = body_key(run, offset, generation);
	uint32_t words = bench_stamp_words(size), alike = 0;
	const struct stamp_header *h = block;

	for (uint32_t i = 0; i < words; i++)
		alike += h->body[i] == body_word(key, i);
	return alike;
}

uint32_t bench_stamp_differs(const void *block, uint32_t size, uint64_t run, uint64_t offset,
			     uint32_t generation)
{
	uint64_t expected[8192 / sizeof(uint64_t)];
	uint32_t at = 0;

	if (size > sizeof(expected))
		return 0;
	bench_stamp_fill(expected, size, run, offset, generation);
	while (at < size && ((const char *)block)[at] == ((const char *)expected)[at])
		at++;
	return at;
}
