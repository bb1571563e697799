/* test_guard.c - blocks that several read and write: who gets in beside whom, and that a block
 * stays whole under threads that all want it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "lock/guard.h"

enum { KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30, STRIPE = 16 * KIB };

static alignas(4096) char memory[64 * KIB];
static struct weft_guard *guard;

static int set_up(void **state)
{
	return weft_guard_create(&guard, memory);
}

static int tear_down(void **state)
{
	weft_guard_destroy(guard);
	return 0;
}

/* --- rules ------------------------------------------------------------------------------------ */

/* Ranges are only looked at: nothing is there. */
static char *at(size_t offset)
{
	return (char *)((uintptr_t)memory + offset);
}

static void readers_beside_each_other(void **state)
{
	assert_true(weft_guard_try_read(guard, at(0), 4 * KIB));
	assert_true(weft_guard_try_read(guard, at(0), MIB));
	weft_guard_unlock_read(guard, at(0), 4 * KIB);
	weft_guard_unlock_read(guard, at(0), MIB);
}

static void a_writer_alone(void **state)
{
	static const struct {
		size_t offset, len;
		bool meets; /* the range that is written */
	} others[] = {
		{ MIB, 512, true },
		{ MIB + 4 * KIB, 4 * KIB, true },
		{ MIB - 512, KIB, true },
		{ 0, 2 * MIB, true },
		{ 0, GIB, true },
		{ 0, MIB, false },
		{ MIB + STRIPE, MIB, false },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		size_t offset = others[i].offset, len = others[i].len;

		assert_true(weft_guard_try_write(guard, at(MIB), 4 * KIB));
		assert_int_equal(weft_guard_try_read(guard, at(offset), len), !others[i].meets);
		if (!others[i].meets)
			weft_guard_unlock_read(guard, at(offset), len);
		assert_int_equal(weft_guard_try_write(guard, at(offset), len), !others[i].meets);
		weft_guard_unlock_write(guard, at(MIB), 4 * KIB);
		/* The refused come again; of what they got before nothing is left. */
		if (others[i].meets)
			assert_true(weft_guard_try_write(guard, at(offset), len));
		weft_guard_unlock_write(guard, at(offset), len);
		assert_true(weft_guard_try_read(guard, at(0), GIB));
		weft_guard_unlock_read(guard, at(0), GIB);
	}
}

/* Readers that come all the time do not keep a writer out, nor does one that came keep them out. */
static void in_turns(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		assert_true(weft_guard_try_read(guard, at(0), 4 * KIB));
		assert_false(weft_guard_writer_waits(guard, at(0), 4 * KIB));
		assert_false(weft_guard_try_write(guard, at(0), 64 * KIB));
		assert_true(weft_guard_writer_waits(guard, at(0), 4 * KIB));
		assert_false(weft_guard_try_read(guard, at(0), 4 * KIB));
		assert_false(weft_guard_try_read(guard, at(48 * KIB), 4 * KIB));
		weft_guard_unlock_read(guard, at(0), 4 * KIB);
		assert_false(weft_guard_try_read(guard, at(0), 4 * KIB));
		assert_true(weft_guard_try_write(guard, at(0), 64 * KIB));
		weft_guard_unlock_write(guard, at(0), 64 * KIB);
	}
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 2, ROUNDS = 4000, BLOCK = 4096 };

static atomic_uint torn;

static void *write_blocks(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		char *to = memory + i * 7 % 14 * BLOCK;

		while (!weft_guard_try_write(guard, to, 2 * BLOCK))
			sched_yield();
		memset(to, (int)(i + *(char *)arg), 2 * BLOCK);
		weft_guard_unlock_write(guard, to, 2 * BLOCK);
	}
	return NULL;
}

static void *read_blocks(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		const char *from = memory + i * 5 % 16 * BLOCK;

		while (!weft_guard_try_read(guard, from, BLOCK))
			sched_yield();
		torn += !!memcmp(from, from + 1, BLOCK - 1);
		weft_guard_unlock_read(guard, from, BLOCK);
	}
	return NULL;
}

static void under_threads(void **state)
{
	static char seeds[THREADS] = { 1, 100 };
	pthread_t writers[THREADS], readers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&writers[i], NULL, write_blocks, &seeds[i]), 0);
		assert_int_equal(pthread_create(&readers[i], NULL, read_blocks, NULL), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(writers[i], NULL);
		pthread_join(readers[i], NULL);
	}
	assert_int_equal(torn, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(readers_beside_each_other),
		CASE(a_writer_alone),
		CASE(in_turns),
		CASE(under_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
