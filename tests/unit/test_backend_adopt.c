/* test_backend_adopt.c - another process goes on with the same storage: by its descriptor. */
#include "backend_case.h"
#include "running.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct weft_backend *adopt(struct weft_backend *from)
{
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	assert_int_equal(weft_spec_parse(from->spec, &spec, &err), 0);
	if (weft_backend_adopt(&be, &spec, dup(weft_backend_descriptor(from)), &err) < 0)
		fail_msg("%s", err.text);
	return be;
}

static void goes_on(const char *spec)
{
	struct weft_backend *be = open_spec(spec), *successor;

	write_at(be, MIB, MIB, 1);
	resize_ok(be, 16 * MIB);
	successor = adopt(be);
	assert_int_equal(successor->size, 16 * MIB);
	assert_string_equal(successor->spec, be->spec);
	assert_int_equal(successor->align, be->align);
	assert_int_equal(successor->block_min, be->block_min);
	assert_data(successor, MIB, MIB, 1);
	write_at(successor, 12 * MIB, MIB, 2);
	assert_data(be, 12 * MIB, MIB, 2);
	weft_backend_close(be);
	assert_data(successor, 12 * MIB, MIB, 2);
	resize_ok(successor, 2 * MIB);
	resize_ok(successor, 16 * MIB);
	assert_data(successor, MIB, MIB, 1);
	assert_zeroes(successor, 12 * MIB, MIB);
	weft_backend_close(successor);
}

/* Both have the storage, and then the successor alone; it can be changed as before. */
static void heir_goes_on(void **state)
{
	need_reactor();
	goes_on("mem:8M");
	goes_on(text("file:%s/plain,size=8M", dir));
	goes_on(text("file:%s/direct,size=8M,direct", dir));
}

static void lock_comes_along(void **state)
{
	const char *spec = text("file:%s/heirloom,size=1M", dir);
	struct weft_backend *be = open_spec(spec), *successor = adopt(be);

	weft_backend_close(be);
	assert_refused(spec, -EBUSY,
		       text("file:%s/heirloom: it is in use: another namespace, target or program "
			    "has locked it",
			    dir));
	weft_backend_close(successor);
	weft_backend_close(open_spec(spec));
}

/* What was there is lost, and the successor does not put zeroes in its place: who serves it tells
 * hosts. */
static void cut_meanwhile_refused(void **state)
{
	static const struct {
		const char *keys;
	} cases[] = { { ",size=8M" }, { ",size=8M,direct" } };

	for_each_named(i, cases, keys) {
		const char *path = text("%s/cut", dir);
		struct weft_backend *be, *successor;
		struct weft_err err = { "" };
		struct weft_spec spec;

		be = open_spec(text("file:%s%s", path, cases[i].keys));
		assert_int_equal(truncate(path, MIB), 0);
		assert_int_equal(weft_spec_parse(be->spec, &spec, &err), 0);
		assert_int_equal(weft_backend_adopt(&successor, &spec,
						    dup(weft_backend_descriptor(be)), &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "it has 1M, less than"));
		assert_int_equal(file_size(path), MIB);
		assert_int_equal(truncate(path, 8 * MIB), 0);
		successor = adopt(be);
		weft_backend_close(successor);
		weft_backend_close(be);
		unlink(path);
	}
}

static void wrong_descriptors_refused(void **state)
{
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	assert_int_equal(weft_spec_parse("mem:1M", &spec, &err), 0);
	assert_int_equal(weft_backend_adopt(&be, &spec, -1, &err), -EBADF);
	/* Somebody could cut it. */
	assert_int_equal(weft_backend_adopt(&be, &spec, memfd_create("x", 0), &err), -EINVAL);
	assert_int_equal(weft_backend_adopt(&be, &spec, open("/dev/null", O_RDWR), &err), -EINVAL);
	assert_int_equal(weft_spec_parse("null:1M", &spec, &err), 0);
	assert_int_equal(weft_backend_adopt(&be, &spec, -1, &err), 0);
	weft_backend_close(be);
}

static void same_storage(void **state)
{
	char cwd[512];
	const char *here = text("file:%s/a", getcwd(cwd, sizeof(cwd)));
	const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "mem:1M", "mem:2M,nsid=3", true },    { "mem:1M", "null:1M", false },
		{ "file:/a,size=1M", "file:/a", true }, { "file:/a", "file:/b", false },
		{ "file:/a", "file:/a,ro", false },     { "file:/a", "file:/a,direct", false },
		{ "file:/a", "block:/a", false },       { "file:a", "file:a,size=1M", true },
		{ "file:a", "file:/nowhere/a", false }, { "file:a", here, true },
	};
	struct weft_spec a, b;

	for_each_named(i, cases, a) {
		assert_int_equal(weft_spec_parse(cases[i].a, &a, NULL), 0);
		assert_int_equal(weft_spec_parse(cases[i].b, &b, NULL), 0);
		if (weft_spec_same(&a, &b) != cases[i].same)
			fail_msg("%s, %s", cases[i].a, cases[i].b);
	}
}

static const struct CMUnitTest without_engine[] = {
	cmocka_unit_test(lock_comes_along),
	cmocka_unit_test(cut_meanwhile_refused),
	cmocka_unit_test(wrong_descriptors_refused),
	cmocka_unit_test(same_storage),
};

static const struct CMUnitTest with_engine[] = {
	cmocka_unit_test(heir_goes_on),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("adopted", without_engine, make_dir, remove_dir);
	failed += cmocka_run_group_tests_name("adopted on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("adopted on io_uring", with_engine, start_uring,
					      stop);
	return failed ? 1 : 0;
}
