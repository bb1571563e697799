/* test_backend_extents.c - which parts of storage are allocated, on both engines. */
#include "backend_case.h"
#include "running.h"

#include <string.h>
#include <unistd.h>

static const char *const specs[] = { "mem:8M", "file" };

static struct weft_backend *open_fresh(const char *spec)
{
	static unsigned count;

	return open_spec(strcmp(spec, "file") ? spec : text("file:%s/%u,size=8M", dir, count++));
}

enum { EXTENTS_MAX = 8 };

static const uint64_t END = 8 * MIB;

/* After which writes, in which range and with which room: what is found. The first time that an
 * extent has no length is their end. */
static const struct extents_row {
	const char *name;
	struct weft_extent written[EXTENTS_MAX];
	uint64_t offset, length;
	unsigned room;
	struct weft_extent found[EXTENTS_MAX];
	uint64_t covered;
} extents_rows[] = {
	{ "nothing was written", {}, 0, END, 8, {}, END },
	{ "all of it", { { 0, 4 * MIB }, { 4 * MIB, 4 * MIB } }, 0, END, 8, { { 0, END } }, END },
	{ "the first page", { { 0, 4096 } }, 0, END, 8, { { 0, 4096 } }, END },
	{ "the last page", { { END - 4096, 4096 } }, 0, END, 8, { { END - 4096, 4096 } }, END },
	{ "a block is its page", { { MIB + 512, 512 } }, 0, END, 8, { { MIB, 4096 } }, END },
	{ "two, apart",
	  { { 0, MIB }, { 2 * MIB, MIB } },
	  0,
	  END,
	  8,
	  { { 0, MIB }, { 2 * MIB, MIB } },
	  END },
	{ "the range begins inside", { { 0, 2 * MIB } }, MIB, 4 * MIB, 8, { { MIB, MIB } }, 4 * MIB },
	{ "the range begins inside a page", { { 0, 8192 } }, 512, MIB, 8, { { 512, 7680 } }, MIB },
	{ "the range ends inside", { { 0, 2 * MIB } }, 0, MIB, 8, { { 0, MIB } }, MIB },
	{ "the range ends inside a page", { { 0, 8192 } }, 0, 512, 8, { { 0, 512 } }, 512 },
	{ "the range is in a hole", { { 0, MIB } }, 2 * MIB, MIB, 8, {}, MIB },
	{ "no room for the second: told up to there",
	  { { 0, MIB }, { 2 * MIB, MIB } },
	  0,
	  END,
	  1,
	  { { 0, MIB } },
	  2 * MIB },
	{ "room for just as many",
	  { { 0, MIB }, { 2 * MIB, MIB } },
	  0,
	  END,
	  2,
	  { { 0, MIB }, { 2 * MIB, MIB } },
	  END },
};

static struct job search(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned room)
{
	struct job job = { .msg.fn = job_submit,
			   .be = be,
			   .io = { .kind = WEFT_IO_EXTENTS,
				   .buf = got,
				   .offset = offset,
				   .length = length,
				   .extents = room,
				   .done = job_done } };

	memset(got, 0xee, sizeof(struct weft_extent) * (EXTENTS_MAX + 1));
	weft_reactor_post(reactor, &job.msg);
	for (int turns = 0; !job.ended && turns < 10000; turns++)
		weft_reactor_turn(reactor, 10);
	assert_true(job.ended);
	return job;
}

static void assert_extents(const struct job *job, const struct extents_row *row)
{
	const struct weft_extent *found = (const struct weft_extent *)got;
	unsigned n = 0;

	for (; n < EXTENTS_MAX && row->found[n].length; n++) {
		assert_int_equal(found[n].offset, row->found[n].offset);
		assert_int_equal(found[n].length, row->found[n].length);
	}
	assert_int_equal(job->rc, 0);
	assert_int_equal(job->io.extents, n);
	assert_int_equal(job->io.covered, row->covered);
}

static void test_extents(void **state)
{
	struct weft_backend *be;
	struct job job;

	need_reactor();
	for_each_row(k, specs) {
		for_each_named(i, extents_rows, name) {
			const struct extents_row *row = &extents_rows[i];

			be = open_fresh(specs[k]);
			for (const struct weft_extent *w = row->written; w->length; w++)
				write_at(be, w->offset, w->length, 1);
			job = search(be, row->offset, row->length, row->room);
			assert_extents(&job, row);
			weft_backend_close(be);
		}
	}
}

/* What is given back is a hole again; what is zeroed and kept may be either. */
static void test_extents_given_back(void **state)
{
	static const struct extents_row rest = { .found = { { 0, MIB }, { 2 * MIB, MIB } },
						 .covered = 8 * MIB };
	struct weft_backend *be;
	struct job job;

	need_reactor();
	for_each_row(k, specs) {
		be = open_fresh(specs[k]);
		write_at(be, 0, 3 * MIB, 1);
		assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, MIB, MIB), 0);
		job = search(be, 0, END, 8);
		assert_extents(&job, &rest);
		weft_backend_close(be);
	}
}

/* However many there are, one search is so much work: what it tells ends early, with what it
 * found. */
static void test_extents_bounded(void **state)
{
	struct weft_backend *be;
	struct job job;
	uint64_t at = 0;

	need_reactor();
	for_each_row(k, specs) {
		be = open_fresh(specs[k]);
		for (uint64_t i = 0; i < END / 16384; i++)
			write_at(be, i * 16384, 4096, 1);
		job = search(be, 0, END, END / 16384);
		assert_int_equal(job.rc, 0);
		assert_in_range(job.io.extents, 1, 128);
		assert_true(job.io.covered < END);
		for (at = 0; at < END; at += job.io.covered) {
			job = search(be, at, END - at, EXTENTS_MAX);
			assert_int_equal(job.rc, 0);
			assert_true(job.io.covered);
		}
		weft_backend_close(be);
	}
}

/* What somebody has cut off the file is no hole. */
static void test_extents_cut(void **state)
{
	const char *path = text("%s/cut-short", dir);
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s,size=8M", path));
	assert_int_equal(truncate(path, MIB), 0);
	assert_int_equal(search(be, 0, MIB, 8).rc, 0);
	assert_int_equal(search(be, 0, END, 8).rc, -EIO);
	assert_int_equal(search(be, 2 * MIB, MIB, 8).rc, -EIO);
	weft_backend_close(be);
}

/* Who does not know says so. */
static void test_extents_unknown(void **state)
{
	struct weft_backend *be;

	need_reactor();
	be = open_spec("null:8M");
	assert_int_equal(search(be, 0, END, 8).rc, -EOPNOTSUPP);
	weft_backend_close(be);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_extents),         cmocka_unit_test(test_extents_given_back),
	cmocka_unit_test(test_extents_bounded), cmocka_unit_test(test_extents_cut),
	cmocka_unit_test(test_extents_unknown),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("extents on epoll", tests, start_epoll, stop);
	failed += cmocka_run_group_tests_name("extents on io_uring", tests, start_uring, stop);
	return failed ? 1 : 0;
}
