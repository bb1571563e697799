/* test_backend.c - what every backend does with io and a new size, on both engines. */
#include "backend_case.h"
#include "running.h"

#include <stdio.h>
#include <string.h>

/* --- io, the same on every backend that stores ------------------------------------------------ */

struct kind {
	const char *name, *spec; /* %s: a fresh path */
};

static const struct kind kinds[] = {
	{ "mem", "mem:8M" },
	{ "file", "file:%s,size=8M" },
	{ "direct", "file:%s,size=8M,direct" },
};

static const char *spec_of(const struct kind *kind)
{
	static unsigned count;
	const char *at = strstr(kind->spec, "%s");

	if (!at)
		return kind->spec;
	return text("%.*s%s/%s.%u%s", (int)(at - kind->spec), kind->spec, dir, kind->name, count++,
		    at + 2);
}

static void test_io(void **state)
{
	struct weft_backend *be;

	need_reactor();
	for_each_named(i, kinds, name) {
		be = open_spec(spec_of(&kinds[i]));
		try_backend(be);
		weft_backend_close(be);
	}
}

/* What is in the file outlives the backend, and what the file has is what is served. */
static void test_io_reopen(void **state)
{
	struct weft_backend *be;
	const char *spec;

	need_reactor();
	for (size_t i = 1; i < COUNT(kinds); i++) {
		spec = spec_of(&kinds[i]);
		be = open_spec(spec);
		write_at(be, MIB, MIB, 1);
		weft_backend_close(be);
		be = open_spec(spec);
		assert_data(be, MIB, MIB, 1);
		weft_backend_close(be);
	}
}

struct batch {
	struct job jobs[64];
	_Alignas(4096) unsigned char bufs[64][4096];
};

static bool batch_ended(const struct batch *batch)
{
	for (size_t i = 0; i < COUNT(batch->jobs); i++)
		if (!batch->jobs[i].ended)
			return false;
	return true;
}

static void run_batch(struct batch *batch, struct weft_backend *be, enum weft_io_kind kind)
{
	for (size_t i = 0; i < COUNT(batch->jobs); i++) {
		batch->jobs[i] = (struct job){
			.msg.fn = job_submit,
			.be = be,
			.io = { .kind = kind,
				.buf = batch->bufs[i],
				.offset = i * 8192,
				.length = 4096,
				.done = job_done },
		};
		weft_reactor_post(reactor, &batch->jobs[i].msg);
	}
	for (int turns = 0; !batch_ended(batch) && turns < 10000; turns++)
		weft_reactor_turn(reactor, 10);
	for (size_t i = 0; i < COUNT(batch->jobs); i++) {
		assert_true(batch->jobs[i].ended);
		assert_int_equal(batch->jobs[i].rc, 0);
	}
}

static void test_io_many(void **state)
{
	static struct batch batch;
	struct weft_backend *be;

	need_reactor();
	for_each_named(k, kinds, name) {
		be = open_spec(spec_of(&kinds[k]));
		for (size_t i = 0; i < COUNT(batch.bufs); i++)
			memset(batch.bufs[i], (int)i + 1, sizeof(batch.bufs[i]));
		run_batch(&batch, be, WEFT_IO_WRITE);
		memset(batch.bufs, 0, sizeof(batch.bufs));
		run_batch(&batch, be, WEFT_IO_READ);
		for (size_t i = 0; i < COUNT(batch.bufs); i++) {
			memset(data, (int)i + 1, 4096);
			assert_memory_equal(batch.bufs[i], data, 4096);
		}
		weft_backend_close(be);
	}
}

static void test_null(void **state)
{
	struct weft_backend *be;

	need_reactor();
	be = open_spec("null:1T");
	write_at(be, 512, 4096, 1);
	assert_zeroes(be, 0, 8192);
	assert_zeroes(be, 1024 * GIB - MIB, MIB);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_FUA, NULL, 0, MIB), 0);
	weft_backend_close(be);
}

static void test_read_only(void **state)
{
	const char *path = text("%s/ro", dir);
	struct weft_backend *be;
	struct weft_err err = { "" };

	need_reactor();
	be = open_spec(text("file:%s,size=1M", path));
	write_at(be, 0, 4096, 1);
	weft_backend_close(be);
	be = open_spec(text("file:%s,ro", path));
	assert_true(be->read_only);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, 4096), -EROFS);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, 0, NULL, 0, 4096), -EROFS);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 0, 4096), -EROFS);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_data(be, 0, 4096, 1);
	assert_int_equal(weft_backend_resize(be, 2 * MIB, &err), -EROFS);
	assert_string_equal(err.text, text("file:%s,ro: it is read only", path));
	weft_backend_close(be);
}

static void test_file_space(void **state)
{
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s/space,size=64M", dir));
	write_at(be, MIB, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_in_range(be->ops->used(be), 4 * MIB, 5 * MIB);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, 0, NULL, MIB, 4 * MIB), 0);
	assert_in_range(be->ops->used(be), 4 * MIB, 5 * MIB); /* nobody gave it back */
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, MIB, 2 * MIB), 0);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_UNMAP, NULL, 3 * MIB, MIB), 0);
	assert_in_range(be->ops->used(be), MIB, 2 * MIB - 1); /* either alone would leave 2 MiB */
	weft_backend_close(be);
}

/* --- resize ----------------------------------------------------------------------------------- */

static void test_resize(void **state)
{
	struct weft_backend *be;

	need_reactor();
	for_each_named(i, kinds, name) {
		be = open_spec(spec_of(&kinds[i]));
		write_at(be, 6 * MIB, 2 * MIB, 1);
		resize_ok(be, 16 * MIB);
		assert_data(be, 6 * MIB, 2 * MIB, 1);
		assert_zeroes(be, 8 * MIB, 4 * MIB);
		write_at(be, 14 * MIB, 2 * MIB, 2);
		resize_ok(be, 7 * MIB);
		resize_ok(be, 16 * MIB);
		fill(2 * MIB, 1);
		read_at(be, 6 * MIB, MIB);
		assert_memory_equal(got, data, MIB);
		assert_zeroes(be, 7 * MIB, MIB);
		assert_zeroes(be, 14 * MIB, 2 * MIB);
		weft_backend_close(be);
	}
}

static void test_resize_edge(void **state)
{
	struct weft_backend *be;

	need_reactor();
	be = open_spec("mem:4608");
	write_at(be, 0, 4608, 1);
	resize_ok(be, 512);
	resize_ok(be, 12800);
	fill(4608, 1);
	read_at(be, 0, 512);
	assert_memory_equal(got, data, 512);
	assert_zeroes(be, 512, 12800 - 512);
	weft_backend_close(be);
}

static void test_resize_spec(void **state)
{
	const char *path = text("%s/resized", dir);
	struct weft_backend *be = open_spec("mem:1M");

	resize_ok(be, 3 * MIB);
	assert_string_equal(be->spec, "mem:3M");
	weft_backend_close(be);
	be = open_spec("null:1M,ro");
	resize_ok(be, 512);
	assert_string_equal(be->spec, "null:512,ro");
	weft_backend_close(be);
	be = open_spec(text("file:%s,size=1M", path));
	resize_ok(be, 1536);
	assert_string_equal(be->spec, text("file:%s,size=1536", path));
	assert_int_equal(file_size(path), 1536);
	weft_backend_close(be);
	be = open_spec(text("file:%s", path));
	resize_ok(be, 4 * MIB);
	assert_string_equal(be->spec, text("file:%s", path));
	weft_backend_close(be);
}

static void test_resize_refused(void **state)
{
	static const struct {
		uint64_t size;
		int rc;
		const char *why;
	} table[] = {
		{ 0, -EINVAL, "mem:1M: a size of 0 is too small" },
		{ 1000, -EINVAL,
		  "mem:1M: a size of 1000 is not a multiple of the block, 512 bytes" },
		{ 1ull << 62, -ENOMEM,
		  "mem:1M: cannot grow to 4096P in place: Cannot allocate memory" },
	};
	struct weft_backend *be = open_spec("mem:1M");

	for_each_named(i, table, why) {
		struct weft_err err = { "" };

		assert_int_equal(weft_backend_resize(be, table[i].size, &err), table[i].rc);
		assert_string_equal(err.text, table[i].why);
		assert_int_equal(be->size, MIB);
		assert_string_equal(be->spec, "mem:1M");
	}
	weft_backend_close(be);
}

/* --- an image that was made for nobody -------------------------------------------------------- */

static void test_unserved(void **state)
{
	static const struct {
		const char *name;
		bool there, never_served, replaced, stays;
	} table[] = {
		{ "made, and nobody was served", .never_served = true },
		{ "made, and hosts were served", .stays = true },
		{ "there before", .there = true, .never_served = true, .stays = true },
		{ "another file has its name", .never_served = true, .replaced = true,
		  .stays = true },
	};
	struct weft_backend *be;
	char path[96], other[96];

	for_each_named(i, table, name) {
		snprintf(path, sizeof(path), "%s/never_served.%zu", dir, i);
		snprintf(other, sizeof(other), "%s/other", dir);
		if (table[i].there)
			make_file(path, 0);
		be = open_spec(text("file:%s,size=1M", path));
		be->never_served = table[i].never_served;
		if (table[i].replaced) {
			make_file(other, 0);
			assert_int_equal(rename(other, path), 0);
		}
		weft_backend_close(be);
		assert_int_equal(file_size(path) >= 0, table[i].stays);
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct CMUnitTest without_engine[] = {
	cmocka_unit_test(test_resize_spec),
	cmocka_unit_test(test_resize_refused),
	cmocka_unit_test(test_unserved),
};

static const struct CMUnitTest with_engine[] = {
	cmocka_unit_test(test_io),        cmocka_unit_test(test_io_reopen),
	cmocka_unit_test(test_io_many),   cmocka_unit_test(test_null),
	cmocka_unit_test(test_read_only), cmocka_unit_test(test_file_space),
	cmocka_unit_test(test_resize),    cmocka_unit_test(test_resize_edge),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("resize", without_engine, make_dir, remove_dir);
	failed += cmocka_run_group_tests_name("io on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("io on io_uring", with_engine, start_uring, stop);
	return failed ? 1 : 0;
}
