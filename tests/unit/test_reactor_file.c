/* test_reactor_file.c - operations on files, on both engines. */
#include "reactor_case.h"
#include "running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- files ------------------------------------------------------------------------------------ */

static int open_temp(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/weft-test-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static int write_file(int fd, const char *data, off_t offset, int flags)
{
	struct waited op = { .op.done = ended };
	struct iovec iov = { (void *)(uintptr_t)data, strlen(data) };

	weft_file_write(r, &op.op, fd, &iov, 1, offset, flags);
	assert_int_equal(op.calls, 0);
	return await(&op);
}

static int read_file(int fd, char *buf, size_t size, off_t offset)
{
	struct waited op = { .op.done = ended };
	struct iovec iov[] = { { buf, 1 }, { buf + 1, size - 1 } };

	weft_file_read(r, &op.op, fd, iov, 2, offset);
	assert_int_equal(op.calls, 0);
	return await(&op);
}

static int sync_file(int fd)
{
	struct waited op = { .op.done = ended };

	weft_file_sync(r, &op.op, fd);
	assert_int_equal(op.calls, 0);
	return await(&op);
}

static int allocate_file(int fd, int mode, off_t offset, off_t length)
{
	struct waited op = { .op.done = ended };

	weft_file_allocate(r, &op.op, fd, mode, offset, length);
	assert_int_equal(op.calls, 0);
	return await(&op);
}

static void files_are_written_and_read(void **state)
{
	char buf[16] = "";
	int fd;

	need_reactor();
	fd = open_temp();
	assert_int_equal(write_file(fd, "hello", 3, 0), 5);
	assert_int_equal(write_file(fd, "there", 8, RWF_DSYNC), 5);
	assert_int_equal(sync_file(fd), 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* so that a read has to wait */
	assert_int_equal(read_file(fd, buf, sizeof(buf), 0), 13);
	assert_memory_equal(buf, "\0\0\0hellothere", 13);
	assert_int_equal(read_file(fd, buf, sizeof(buf), 13), 0);
	assert_int_equal(allocate_file(fd, 0, 0, 4096), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4096);
	close(fd);
}

static void files_fail_with_their_reason(void **state)
{
	char buf[4];
	int fd;

	need_reactor();
	assert_int_equal(write_file(-1, "x", 0, 0), -EBADF);
	assert_int_equal(read_file(-1, buf, sizeof(buf), 0), -EBADF);
	assert_int_equal(sync_file(-1), -EBADF);
	assert_int_equal(allocate_file(-1, 0, 0, 1), -EBADF);

	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(write_file(fd, "x", 0, 0), -EBADF);
	close(fd);
	fd = open("/dev/full", O_WRONLY);
	assert_int_equal(write_file(fd, "x", 0, 0), -ENOSPC);
	close(fd);
	fd = open_temp();
	assert_int_equal(allocate_file(fd, 0, -1, 1), -EINVAL);
	close(fd);
}

#define MANY_READS 6000 /* more than the rings hold */

static void more_at_once_than_fits(void **state)
{
	struct waited *ops;
	struct iovec *iovs;
	char *bytes;
	int fd;

	need_reactor();
	ops = calloc(MANY_READS, sizeof(*ops));
	iovs = calloc(MANY_READS, sizeof(*iovs));
	bytes = calloc(MANY_READS, 1);
	fd = open_temp();
	assert_int_equal(write_file(fd, "0123456789", 0, 0), 10);
	for (int i = 0; i < MANY_READS; i++) {
		ops[i].op.done = ended;
		iovs[i] = (struct iovec){ &bytes[i], 1 };
		weft_file_read(r, &ops[i].op, fd, &iovs[i], 1, i % 10);
	}
	for (int i = 0; i < MANY_READS; i++) {
		assert_int_equal(await(&ops[i]), 1);
		assert_int_equal(bytes[i], '0' + i % 10);
	}
	close(fd);
	free(bytes);
	free(iovs);
	free(ops);
}

/* Operations that block, from a reactor that sleeps: each completion has to wake it. */
static void blocking_operations_wake_the_reactor(void **state)
{
	struct waited ops[32];
	int fd;

	need_reactor();
	fd = open_temp();
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < COUNT(ops); i++) {
			ops[i] = (struct waited){ .op.done = ended };
			weft_file_allocate(r, &ops[i].op, fd, FALLOC_FL_KEEP_SIZE, 0, 4096);
		}
		for (size_t i = 0; i < COUNT(ops); i++)
			assert_int_equal(await(&ops[i]), 0);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(files_are_written_and_read),
		on_both(files_fail_with_their_reason),
		on_both(more_at_once_than_fits),
		on_both(blocking_operations_wake_the_reactor),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
