/* test_memory.c - memory that a program declares, and I/O on memory that is not the CPU's. */
#include "host_case.h"

#include <sys/mman.h>
#include <weft/memory.h>

#include "memory/region.h"
#include "running.h"

/* An address range that nothing is mapped to: whoever touches it dies. */
static char *no_memory(size_t size)
{
	char *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static bool known(const void *at, size_t len)
{
	struct weft_region_view view = { 0 };
	bool found = weft_region_find(&view, at, len);

	weft_region_view_free(&view);
	return found;
}

/* --- coming and going ------------------------------------------------------------------------- */

static const struct {
	size_t size;
	int error;
} sizes[] = {
	{ 1, 0 },
	{ 4096, 0 },
	{ 4097, 0 },
	{ 10 << 20, 0 },
	{ 0, EINVAL },
	{ SIZE_MAX, ENOMEM },
	{ SIZE_MAX - 4096, ENOMEM },
	{ SIZE_MAX / 2, ENOMEM },
};

static void allocated_memory_is_known_until_freed(void **state)
{
	for_each_row(i, sizes) {
		char *memory;

		errno = 0;
		memory = weft_memory_alloc(sizes[i].size);
		if (!memory != !!sizes[i].error || errno != sizes[i].error)
			fail_msg("%zu bytes: %p, errno %d", sizes[i].size, (void *)memory, errno);
		if (!memory)
			continue;
		assert_int_equal((uintptr_t)memory % 4096, 0);
		assert_int_equal(memory[0] | memory[sizes[i].size - 1], 0);
		memset(memory, 'x', sizes[i].size);
		assert_true(known(memory, sizes[i].size));
		weft_memory_free(memory);
		assert_false(known(memory, 1));
	}
	weft_memory_free(NULL);
}

static void own_memory_is_known_until_unregistered(void **state)
{
	static char mine[10000];
	struct weft_err err = { "" };

	assert_int_equal(weft_memory_register(mine, sizeof(mine), &err), 0);
	assert_true(known(mine, sizeof(mine)));
	assert_int_equal(weft_memory_register(mine + 9999, 2, &err), -EEXIST);
	assert_non_null(strstr(err.text, "declared already"));
	assert_int_equal(weft_memory_unregister(mine + 1, NULL), -ENOENT);
	assert_int_equal(weft_memory_unregister(mine, NULL), 0);
	assert_false(known(mine, 1));
	assert_int_equal(weft_memory_unregister(mine, NULL), -ENOENT);
	assert_int_equal(weft_memory_register(NULL, 1, NULL), -EINVAL);
	assert_int_equal(weft_memory_register(mine, 0, NULL), -EINVAL);
}

static void what_others_declared_is_not_unregistered(void **state)
{
	struct weft_region *region = NULL;
	char *memory = weft_memory_alloc(4096);
	static char theirs[4096];

	assert_int_equal(weft_memory_unregister(memory, NULL), -ENOENT);
	weft_memory_free(memory);
	assert_int_equal(weft_region_add(&region, theirs, sizeof(theirs), 0, NULL), 0);
	assert_int_equal(weft_memory_unregister(theirs, NULL), -ENOENT);
	weft_region_remove(region);
}

/* --- I/O -------------------------------------------------------------------------------------- */

static void declared_memory_takes_data(void **state)
{
	struct host h = host_open("", NS_512);
	char *out = weft_memory_alloc(65536), *in = weft_memory_alloc(65536);
	struct weft_err err = { "" };

	memset(out, 'm', 65536);
	assert_int_equal(weft_write(h.queue, h.ns, out, 65536, 0, 0, &err), 0);
	assert_int_equal(weft_read(h.queue, h.ns, in, 65536, 0, &err), 0);
	assert_memory_equal(in, out, 65536);
	host_close(&h);
	weft_memory_free(out);
	weft_memory_free(in);
}

/* Which part of 16 KiB of an imported dma-buf and 16 KiB of plain memory behind it. */
static const struct {
	enum weft_op_code op;
	size_t from, length;
	int rc;
} foreign[] = {
	{ WEFT_READ, 0, 4096, -EOPNOTSUPP },
	{ WEFT_WRITE, 0, 4096, -EOPNOTSUPP },
	{ WEFT_COMPARE, 0, 4096, -EOPNOTSUPP },
	{ WEFT_READ, 8192, 16384, -EOPNOTSUPP },
	{ WEFT_WRITE, 12288, 8192, -EOPNOTSUPP },
	{ WEFT_READ, 16384, 16384, 0 },
	{ WEFT_WRITE, 16384, 4096, 0 },
	{ WEFT_ZERO, 0, 4096, 0 },
	{ WEFT_TRIM, 0, 4096, 0 },
};

static int run_on(struct host *h, enum weft_op_code op, char *at, size_t length,
		  struct weft_err *err)
{
	/* Memory in one piece, and in two. */
	struct iovec iov[] = { { at, length / 2 }, { at + length / 2, length - length / 2 } };
	struct weft_cmd cmd = { .op = op, .ns = h->ns, .length = length, .iov = iov, .iovcnt = 2 };

	return weft_run(h->queue, &cmd, err);
}

static void tcp_does_not_touch_a_devices_memory(void **state)
{
	struct host h = host_open("", NS_512);
	char *at = no_memory(32768);
	int fd = memfd_create("stands for a dma-buf", MFD_CLOEXEC);

	assert_int_equal(mprotect(at + 16384, 16384, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(weft_memory_import_dmabuf(at, 16384, fd, 0, NULL), 0);
	close(fd);
	for_each_row(i, foreign) {
		struct weft_err err = { "" };
		int rc = run_on(&h, foreign[i].op, at + foreign[i].from, foreign[i].length, &err);

		if (rc != foreign[i].rc)
			fail_msg("case %zu: rc %d: %s", i, rc, err.text);
		if (rc && !strstr(err.text, "does not reach a device's memory"))
			fail_msg("case %zu: %s", i, err.text);
	}
	assert_int_equal(weft_identify(h.ctrl, 1, 0, at, NULL), -EOPNOTSUPP);
	assert_int_equal(weft_memory_unregister(at, NULL), 0);
	assert_int_equal(mprotect(at, 16384, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(run_on(&h, WEFT_READ, at, 32768, NULL), 0);
	munmap(at, 32768);
	host_close(&h);
}

static void a_dmabuf_needs_a_descriptor(void **state)
{
	struct weft_err err = { "" };
	char *at = no_memory(4096);

	assert_int_equal(weft_memory_import_dmabuf(at, 4096, -1, 0, &err), -EBADF);
	assert_string_not_equal(err.text, "");
	assert_false(known(at, 1));
	munmap(at, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocated_memory_is_known_until_freed),
		cmocka_unit_test(own_memory_is_known_until_unregistered),
		cmocka_unit_test(what_others_declared_is_not_unregistered),
		cmocka_unit_test(declared_memory_takes_data),
		cmocka_unit_test(tcp_does_not_touch_a_devices_memory),
		cmocka_unit_test(a_dmabuf_needs_a_descriptor),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
