/* test_mount.c - byte_io.c: any offset and length on a disk of blocks, against a file in memory. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "volume/internal.h"
#include "running.h"

#define SIZE    (16 * 4096)
#define THREADS 4

/* --- the disk: what byte_io.c would reach through volume.c -------------------------------------- */

static uint8_t blocks[SIZE];
static uint32_t block_size;
static _Atomic unsigned seen_flags;
static unsigned zeroes_seen;

void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info)
{
	*info = (struct weft_ns_info){ .block_size = block_size, .size = SIZE };
}

static void move_pieces(const struct weft_cmd *cmd, bool out)
{
	uint8_t *at = blocks + cmd->offset;

	for (int i = 0; i < cmd->iovcnt; i++) {
		if (out)
			memcpy(at, cmd->iov[i].iov_base, cmd->iov[i].iov_len);
		else
			memcpy(cmd->iov[i].iov_base, at, cmd->iov[i].iov_len);
		at += cmd->iov[i].iov_len;
		sched_yield(); /* show what a lock forgets */
	}
	assert_ptr_equal(at, blocks + cmd->offset + cmd->length);
}

int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err)
{
	assert_int_equal(cmd->offset % block_size, 0);
	assert_int_equal(cmd->length % block_size, 0);
	assert_true(cmd->offset + cmd->length <= SIZE);
	seen_flags = cmd->flags;
	switch (cmd->op) {
	case WEFT_READ:
	case WEFT_WRITE:
		assert_true(cmd->length > 0);
		move_pieces(cmd, cmd->op == WEFT_WRITE);
		return 0;
	case WEFT_ZERO:
		zeroes_seen++;
		memset(blocks + cmd->offset, 0, cmd->length);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* By what the blocks hold: one with a byte that is not 0 is data. An answer tells of so many. */
static uint64_t answer_blocks = UINT64_MAX;
static unsigned asked;

static bool is_data(uint64_t offset)
{
	for (unsigned i = 0; i < block_size; i++)
		if (blocks[offset + i])
			return true;
	return false;
}

unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max)
{
	unsigned n = 0;

	asked++;
	assert_int_equal(offset % block_size, 0);
	assert_true(length && offset + length <= SIZE);
	for (uint64_t i = 0; i < answer_blocks && i < length / block_size; i++) {
		bool data = is_data(offset + i * block_size);

		if (n && extents[n - 1].data == data)
			extents[n - 1].length += block_size;
		else if (n == max)
			break;
		else
			extents[n++] = (struct weft_ns_extent){ block_size, data };
	}
	return n;
}

static void bytes_init(struct weft_volume *bytes, uint32_t block, bool can_zero)
{
	*bytes = (struct weft_volume){ .info.block_size = block, .can_zero = can_zero };
	weft_range_locks_init(&bytes->write_locks);
	block_size = block;
	zeroes_seen = 0;
	memset(blocks, 0x11, sizeof(blocks));
}

/* --- cases ------------------------------------------------------------------------------------ */

static void test_span(void **state)
{
	static const struct {
		uint64_t offset, length;
		uint32_t block;
		struct weft_block_span want;
	} cases[] = {
		{ 0, 512, 512, { 0, 512, 0, 0 } },
		{ 1, 1, 512, { 0, 512, 1, 510 } },
		{ 511, 2, 512, { 0, 1024, 511, 511 } },
		{ 512, 513, 512, { 512, 1024, 0, 511 } },
		{ 100, 4096, 4096, { 0, 8192, 100, 3996 } },
		{ 1ULL << 40, 4096, 512, { 1ULL << 40, 4096, 0, 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weft_block_span got = weft_block_span_of(cases[i].offset, cases[i].length,
								cases[i].block);

		assert_memory_equal(&got, &cases[i].want, sizeof(got));
	}
}

/* What a random mix of reads, writes and zeroes leaves is what it leaves in memory. */
static void random_mix(uint32_t block, bool can_zero)
{
	static uint8_t model[SIZE], data[SIZE];
	struct weft_volume bytes;
	unsigned seed = block + can_zero;

	bytes_init(&bytes, block, can_zero);
	memcpy(model, blocks, SIZE);
	for (int i = 0; i < 4000; i++) {
		uint64_t offset = (unsigned)rand_r(&seed) % SIZE;
		size_t length = (unsigned)rand_r(&seed) % (3 * block);
		size_t fits = length < SIZE - offset ? length : SIZE - offset;

		switch (rand_r(&seed) % 3) {
		case 0:
			assert_int_equal(weft_volume_read(&bytes, data, length, offset), fits);
			assert_memory_equal(data, model + offset, fits);
			break;
		case 1:
			memset(data, rand_r(&seed), length);
			assert_int_equal(weft_volume_write(&bytes, data, length, offset, 0), fits);
			memcpy(model + offset, data, fits);
			break;
		default:
			assert_int_equal(weft_volume_zero(&bytes, length, offset, WEFT_UNMAP), 0);
			memset(model + offset, 0, fits);
		}
		assert_memory_equal(blocks, model, SIZE);
	}
	assert_int_equal(zeroes_seen > 0, can_zero);
	weft_range_locks_destroy(&bytes.write_locks);
}

static void test_mix(void **state)
{
	random_mix(512, true);
	random_mix(512, false);
	random_mix(4096, true);
	random_mix(4096, false);
}

static void test_end(void **state)
{
	struct weft_volume bytes;
	uint8_t data[1024] = {};

	bytes_init(&bytes, 512, true);
	assert_int_equal(weft_volume_read(&bytes, data, 100, SIZE), 0);
	assert_int_equal(weft_volume_read(&bytes, data, 100, UINT64_MAX - 200), 0);
	assert_int_equal(weft_volume_read(&bytes, data, 1024, SIZE - 7), 7);
	assert_int_equal(weft_volume_write(&bytes, data, 1, SIZE, 0), -ENOSPC);
	assert_int_equal(weft_volume_write(&bytes, data, 0, SIZE, 0), 0);
	assert_int_equal(weft_volume_write(&bytes, data, 1024, SIZE - 513, 0), 513);
	assert_int_equal(weft_volume_zero(&bytes, SIZE, SIZE - 600, 0), 0);
	assert_int_equal(weft_volume_zero(&bytes, 512, SIZE + 512, 0), 0);
	assert_int_equal(weft_volume_zero(&bytes, 512, UINT64_MAX - 200, 0), 0);
	assert_int_equal(weft_volume_zero(&bytes, UINT64_MAX, UINT64_MAX, 0), 0);
	assert_int_equal(blocks[SIZE - 601], 0x11);
	assert_int_equal(blocks[SIZE - 600], 0);
}

static void test_flags(void **state)
{
	struct weft_volume bytes;
	uint8_t data[512] = {};

	bytes_init(&bytes, 512, true);
	weft_volume_write(&bytes, data, 100, 3, WEFT_FUA);
	assert_int_equal(seen_flags, WEFT_FUA);
	weft_volume_write(&bytes, data, 512, 0, 0);
	assert_int_equal(seen_flags, 0);
	weft_volume_zero(&bytes, 1024, 512, WEFT_UNMAP);
	assert_int_equal(seen_flags, WEFT_UNMAP);
}

/* Every thread writes bytes of its own, in blocks that it shares with the others, and finds them
 * again when it comes back to them. */
struct writer {
	pthread_t thread;
	struct weft_volume *bytes;
	unsigned index, lost;
};

static void *writer_main(void *arg)
{
	struct writer *writer = arg;
	uint8_t data[100], old[100];

	for (uint64_t i = 0; i < 4000; i++) {
		uint64_t offset = (i % 8 * THREADS + writer->index) * sizeof(data);

		weft_volume_read(writer->bytes, old, sizeof(old), offset);
		writer->lost += i >= 8 && old[50] != (uint8_t)(i - 8);
		memset(data, (int)i, sizeof(data));
		weft_volume_write(writer->bytes, data, sizeof(data), offset, 0);
	}
	return NULL;
}

static void test_neighbours(void **state)
{
	struct writer writers[THREADS];
	struct weft_volume bytes;

	bytes_init(&bytes, 512, true);
	for (unsigned i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ .bytes = &bytes, .index = i };
		pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[i].lost, 0);
	}
}

/* Data in blocks 2, 3 and the last one. */
static void test_seek(void **state)
{
	enum { BLOCK = 512, END = SIZE };
	static const struct {
		const char *name;
		uint64_t offset;
		off_t data, hole;
	} rows[] = {
		{ "at the start", 0, 1024, 0 },
		{ "inside a block", 100, 1024, 100 },
		{ "at data", 1024, 1024, 2048 },
		{ "inside data", 1500, 1500, 2048 },
		{ "behind it", 2048, END - BLOCK, 2048 },
		{ "in the last block", END - 1, END - 1, END },
		{ "at the end", END, -ENXIO, -ENXIO },
		{ "beyond", INT64_MAX, -ENXIO, -ENXIO },
	};
	struct weft_volume bytes;

	bytes_init(&bytes, BLOCK, true);
	memset(blocks, 0, SIZE);
	blocks[1024] = blocks[2047] = blocks[END - 1] = 1;
	for_each_named(i, rows, name) {
		for (answer_blocks = 1; answer_blocks < 4; answer_blocks++) {
			assert_int_equal(weft_volume_seek(&bytes, rows[i].offset, true),
					 rows[i].data);
			assert_int_equal(weft_volume_seek(&bytes, rows[i].offset, false),
					 rows[i].hole);
		}
	}
	answer_blocks = UINT64_MAX;
	blocks[END - 1] = 0;
	assert_int_equal(weft_volume_seek(&bytes, 2048, true), -ENXIO);
}

/* However little a target tells at a time, there is an end, and it is not wrong. */
static void test_seek_ends(void **state)
{
	struct weft_volume bytes;
	off_t at;

	bytes_init(&bytes, 1, true);
	answer_blocks = 1;
	memset(blocks, 0, SIZE);
	asked = 0;
	at = weft_volume_seek(&bytes, 0, true);
	assert_in_range(asked, 1, 4096);
	assert_in_range(at, 1, SIZE - 1);
	memset(blocks, 1, SIZE);
	assert_int_equal(weft_volume_seek(&bytes, 0, false), SIZE);
	assert_in_range(asked, 2, 2 * 4096);
	answer_blocks = UINT64_MAX;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_span),       cmocka_unit_test(test_mix),
		cmocka_unit_test(test_end),        cmocka_unit_test(test_flags),
		cmocka_unit_test(test_neighbours), cmocka_unit_test(test_seek),
		cmocka_unit_test(test_seek_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
