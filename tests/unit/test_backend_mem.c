/* test_backend_mem.c - memory as a backend: its pages, its address, and adapters that know it. */
#include "backend_case.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lock/guard.h"
#include "memory/region.h"
#include "running.h"

/* --- its pages -------------------------------------------------------------------------------- */

static size_t resident_pages(void *at, size_t pages)
{
	unsigned char present[64];
	size_t count = 0;

	assert_in_range(pages, 1, sizeof(present));
	assert_int_equal(mincore(at, pages * 4096, present), 0);
	for (size_t i = 0; i < pages; i++)
		count += present[i] & 1;
	return count;
}

static void test_mem_space(void **state)
{
	struct weft_backend *be;
	char *at;

	need_reactor();
	if (sysconf(_SC_PAGESIZE) != 4096)
		skip_because("pages are not 4096 bytes");
	be = open_spec("mem:64M");
	at = be->ops->map(be, 4 * MIB);
	assert_int_equal(resident_pages(at, 16), 0);
	write_at(be, 4 * MIB, 64 * KIB, 1);
	assert_memory_equal(at, data, 64 * KIB);
	assert_int_equal(resident_pages(at, 16), 16);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 4 * MIB, 64 * KIB), 0);
	assert_int_equal(resident_pages(at, 16), 0);
	weft_backend_close(be);
}

/* --- large pages ------------------------------------------------------------------------------ */

/* Of the mapping that begins at @at, the bytes that are in large pages. */
static size_t large_bytes(const void *at)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	const char *begin = text("%lx-", (unsigned long)at);
	bool here = false;
	size_t kib = 0;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (strchr(line, '-') && strstr(line, " rw-s "))
			here = !strncmp(line, begin, strlen(begin));
		if (here && sscanf(line, "ShmemPmdMapped: %zu kB", &kib) == 1)
			break;
	}
	fclose(smaps);
	return kib * KIB;
}

static void wait_for_large(const void *at, size_t bytes)
{
	for (int i = 0; i < 1000 && large_bytes(at) != bytes; i++)
		usleep(10000);
	assert_int_equal(large_bytes(at), bytes);
}

static void need_large_pages(void)
{
	struct weft_backend *be = open_spec("mem:2M");
	char *at = be->ops->map(be, 0);
	int rc;

	*at = 1;
	rc = madvise(at, 2 * MIB, 25 /* MADV_COLLAPSE */);
	weft_backend_close(be);
	if (rc < 0)
		skip_because("this kernel makes no large pages of shared memory");
}

static void write_mib(struct weft_backend *be, unsigned from, unsigned to, unsigned seed)
{
	for (unsigned i = from; i < to; i++)
		write_at(be, i * MIB, MIB, seed + i);
}

static void test_mem_fills_up(void **state)
{
	struct weft_backend *be;
	char *at;

	need_reactor();
	need_large_pages();
	be = open_spec("mem:8M");
	at = be->ops->map(be, 0);
	for (unsigned round = 0; round < 2; round++) {
		write_mib(be, 0, 8, round);
		wait_for_large(at, 8 * MIB);
		for (unsigned i = 0; i < 8; i++)
			assert_data(be, i * MIB, MIB, round + i);
		assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 2 * MIB, 3 * MIB), 0);
		assert_zeroes(be, 2 * MIB, 3 * MIB);
		assert_data(be, MIB, MIB, round + 1);
		assert_data(be, 5 * MIB, MIB, round + 5);
	}
	weft_backend_close(be);
}

/* Much is written, and little of it is there: that must not become more. */
static void test_mem_stays_sparse(void **state)
{
	struct weft_backend *be;
	char *at;

	need_reactor();
	need_large_pages();
	be = open_spec("mem:4M");
	at = be->ops->map(be, 0);
	for (unsigned i = 0; i < 64; i++)
		write_at(be, 0, 64 * KIB, i);
	write_mib(be, 2, 4, 0);
	wait_for_large(at, 2 * MIB);
	assert_int_equal(resident_pages(at, 64), 16);
	assert_data(be, 0, 64 * KIB, 63);
	weft_backend_close(be);
}

/* While pages of it are being made large. */
static void test_mem_ends(void **state)
{
	struct weft_backend *be;

	need_reactor();
	for (unsigned i = 0; i < 30; i++) {
		be = open_spec("mem:16M");
		write_mib(be, 0, 4 + i % 12, i);
		weft_backend_close(be);
	}
}

/* --- its address ------------------------------------------------------------------------------ */

/* Others hold the address and use it while the size changes. */
static void test_resize_mem_stays(void **state)
{
	struct weft_backend *be = open_spec("mem:1M");
	char *at = be->ops->map(be, 0);

	at[MIB - 1] = 'x';
	resize_ok(be, 32 * GIB);
	assert_ptr_equal(be->ops->map(be, 0), at);
	assert_int_equal(at[MIB - 1], 'x');
	at[32 * GIB - 1] = 'y';
	resize_ok(be, 4096);
	at[32 * GIB - 1] = 'z'; /* a write that was under way */
	assert_int_equal(at[MIB - 1], 0);
	resize_ok(be, 32 * GIB);
	assert_ptr_equal(be->ops->map(be, 0), at);
	assert_int_equal(at[32 * GIB - 1], 0);
	weft_backend_close(be);
}

/* --- memory that an adapter knows ------------------------------------------------------------- */

/* As an adapter does, a pipe holds on to the page itself; what it reads of it later is what an
 * adapter would send. */
struct holder {
	int ends[2];
};

static struct holder hold_page(char *at)
{
	struct iovec iov = { at, 1 };
	struct holder holder;

	assert_int_equal(pipe(holder.ends), 0);
	assert_int_equal(vmsplice(holder.ends[1], &iov, 1, 0), 1);
	return holder;
}

static char held_byte(struct holder holder)
{
	char byte;

	assert_int_equal(read(holder.ends[0], &byte, 1), 1);
	close(holder.ends[0]);
	close(holder.ends[1]);
	return byte;
}

static void pin(char *at)
{
	struct weft_region_view view = { 0 };
	struct weft_region *region = weft_region_find(&view, at, 4096);

	assert_non_null(region);
	weft_region_lock(region);
	weft_region_pin(region, at, 4096);
	weft_region_unlock(region);
	weft_region_view_free(&view);
}

static void test_mem_is_a_region(void **state)
{
	struct weft_backend *be = open_spec("mem:1M"), *other = open_spec("mem:4608");
	char *at = be->ops->map(be, 0);
	struct weft_region_view view = { 0 };
	struct weft_region *region = weft_region_find(&view, at, MIB);

	assert_non_null(region);
	assert_ptr_equal(region->base, at);
	assert_int_equal(region->granule, MIB);
	assert_int_equal(region->size % MIB, 0);
	at = other->ops->map(other, 0);
	assert_ptr_not_equal(weft_region_find(&view, at, MIB), region);
	at[MIB - 1] = 'x'; /* the last granule is there as a whole */
	at = be->ops->map(be, 0);
	resize_ok(be, 8 * GIB);
	assert_ptr_equal(weft_region_find(&view, at, 8 * GIB), region);
	weft_backend_close(be);
	weft_backend_close(other);
	assert_null(weft_region_find(&view, at, 1));
	weft_region_view_free(&view);
}

static const struct {
	enum weft_io_kind kind;
	unsigned flags;
} clearing[] = {
	{ WEFT_IO_TRIM, 0 },
	{ WEFT_IO_ZERO, 0 },
	{ WEFT_IO_ZERO, WEFT_IO_UNMAP },
};

static void test_mem_pinned(void **state)
{
	struct weft_backend *be;
	char *at;

	need_reactor();
	be = open_spec("mem:64M");
	at = be->ops->map(be, 0);
	pin(at + 4 * MIB);
	for_each_row(i, clearing) {
		struct holder pinned, free_to_go;

		memset(at + 3 * MIB, 'x', 3 * MIB);
		pinned = hold_page(at + 4 * MIB);
		free_to_go = hold_page(at + 5 * MIB);
		assert_int_equal(do_io(be, clearing[i].kind, clearing[i].flags, NULL, 3 * MIB,
				       3 * MIB),
				 0);
		assert_zeroes(be, 3 * MIB, 3 * MIB);
		assert_int_equal(held_byte(pinned), 0);
		assert_int_equal(held_byte(free_to_go), 'x');
	}
	weft_backend_close(be);
}

static void test_resize_mem_pinned(void **state)
{
	struct weft_backend *be = open_spec("mem:64M");
	char *at = be->ops->map(be, 0);
	struct holder holder;

	pin(at + 4 * MIB);
	memset(at + 4 * MIB, 'x', MIB);
	holder = hold_page(at + 4 * MIB);
	resize_ok(be, MIB);
	assert_int_equal(held_byte(holder), 0);
	at[4 * MIB] = 'y'; /* a write that was under way */
	holder = hold_page(at + 4 * MIB);
	resize_ok(be, 32 * GIB);
	assert_int_equal(held_byte(holder), 0);
	assert_int_equal(at[4 * MIB], 0);
	weft_backend_close(be);
}

/* --- blocks that others hold ------------------------------------------------------------------ */

/* Of turns by which a reactor that only waits for others must have come to rest. */
enum { TURNS_MAX = 1000 };

static void come_to_rest(void)
{
	unsigned turns = 0;

	do {
		assert_true(turns++ < TURNS_MAX);
		weft_reactor_turn(reactor, 0);
	} while (weft_reactor_busy(reactor));
}

static struct weft_bulk_flow line;

/* Somebody reads there for as long as it likes, as an adapter may for a slow host. */
static void test_mem_waits_at_rest(void **state)
{
	static const struct {
		enum weft_io_kind kind;
		uint64_t offset, length;
	} cases[] = {
		{ WEFT_IO_WRITE, 16 * MIB, 4 * KIB },
		{ WEFT_IO_ZERO, 16 * MIB, 4 * KIB },
		{ WEFT_IO_TRIM, 16 * MIB, 2 * MIB },
	};
	struct weft_backend *be;
	char *at;

	need_reactor();
	be = open_spec("mem:64M");
	at = be->ops->map(be, 16 * MIB);
	for_each_row(i, cases) {
		struct job job = {
			.msg.fn = job_submit,
			.be = be,
			.io = { .kind = cases[i].kind,
				.buf = data,
				.offset = cases[i].offset,
				.length = cases[i].length,
				.done = job_done },
		};
		struct job reader = {
			.msg.fn = job_submit,
			.be = be,
			.io = { .kind = WEFT_IO_READ,
				.buf = got,
				.offset = 16 * MIB,
				.length = 4 * KIB,
				.done = job_done },
		};

		assert_true(weft_guard_try_read(be->guard, at, 4 * KIB));
		weft_reactor_post(reactor, &job.msg);
		come_to_rest();
		weft_reactor_post(reactor, &reader.msg); /* whom the writer keeps out */
		come_to_rest();
		assert_false(job.ended || reader.ended);
		weft_guard_unlock_read(be->guard, at, 4 * KIB);
		while (!job.ended || !reader.ended)
			weft_reactor_turn(reactor, -1);
		assert_int_equal(job.rc | reader.rc, 0);
	}
	weft_backend_close(be);
}

/* Bulk work of the same host, without end. */
static void spend_a_turn(struct weft_task *task)
{
	weft_reactor_bulk_spend(reactor, MIB);
	weft_reactor_bulk_push(reactor, &line, task);
}

/* A clear that is kept out keeps readers out: it does not wait behind what came after it. */
static void test_mem_keeps_its_place(void **state)
{
	struct job clear = { .msg.fn = job_submit }, reader = { .msg.fn = job_submit };
	struct weft_task others[100];
	unsigned turns = 0;
	char *at;

	need_reactor();
	weft_bulk_flow_init(&line, NULL);
	clear.be = reader.be = open_spec("mem:64M");
	clear.io = (struct weft_io){ WEFT_IO_TRIM, .length = MIB, .done = job_done };
	reader.io = (struct weft_io){ WEFT_IO_READ, .buf = got, .length = KIB, .done = job_done };
	at = clear.be->ops->map(clear.be, 0);
	assert_true(weft_guard_try_read(clear.be->guard, at, 4 * KIB));
	weft_reactor_post(reactor, &clear.msg);
	for (unsigned i = 0; i < COUNT(others); i++) {
		weft_task_init(&others[i], spend_a_turn);
		weft_reactor_bulk_push(reactor, &line, &others[i]);
	}
	for (unsigned i = 0; i < 10; i++)
		weft_reactor_turn(reactor, 0);
	weft_guard_unlock_read(clear.be->guard, at, 4 * KIB);
	weft_reactor_post(reactor, &reader.msg);
	for (; !clear.ended || !reader.ended; turns++) {
		assert_true(turns < 4);
		weft_reactor_turn(reactor, 0);
	}
	assert_int_equal(clear.rc | reader.rc, 0);
	for (unsigned i = 0; i < COUNT(others); i++)
		weft_reactor_bulk_cancel(&line, &others[i]);
	weft_backend_close(clear.be);
}

static void test_mem_without_region(void **state)
{
	struct weft_region *everything = NULL;
	struct weft_region_view view = { 0 };
	struct weft_backend *be;

	need_reactor();
	assert_int_equal(weft_region_add(&everything, (void *)4096, SIZE_MAX / 2, 0, NULL), 0);
	be = open_spec("mem:8M");
	assert_ptr_equal(weft_region_find(&view, be->ops->map(be, 0), 1), everything);
	write_at(be, 0, 4 * MIB, 1);
	assert_data(be, 0, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 0, 4 * MIB), 0);
	assert_zeroes(be, 0, 4 * MIB);
	resize_ok(be, 16 * MIB);
	resize_ok(be, MIB);
	weft_backend_close(be);
	weft_region_remove(everything);
	weft_region_view_free(&view);
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct CMUnitTest without_engine[] = {
	cmocka_unit_test(test_resize_mem_stays),
	cmocka_unit_test(test_mem_is_a_region),
	cmocka_unit_test(test_resize_mem_pinned),
};

static const struct CMUnitTest with_engine[] = {
	cmocka_unit_test(test_mem_space),         cmocka_unit_test(test_mem_fills_up),
	cmocka_unit_test(test_mem_stays_sparse),  cmocka_unit_test(test_mem_ends),
	cmocka_unit_test(test_mem_pinned),        cmocka_unit_test(test_mem_without_region),
	cmocka_unit_test(test_mem_waits_at_rest), cmocka_unit_test(test_mem_keeps_its_place),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("memory", without_engine, make_dir, remove_dir);
	failed += cmocka_run_group_tests_name("memory on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("memory on io_uring", with_engine, start_uring, stop);
	return failed ? 1 : 0;
}
