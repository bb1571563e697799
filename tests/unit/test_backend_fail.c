/* test_backend_fail.c - disks that fail, and are short.
 *
 * The system calls that the epoll engine makes are wrapped here, so that they do so on demand;
 * io_uring makes none. */
#include "backend_case.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend/disk.h"
#include "running.h"

/* --- a disk that misbehaves ------------------------------------------------------------------- */

static struct {
	atomic_int write_error; /* every write fails with it */
	atomic_int dsync_error; /* writes with RWF_DSYNC do */
	atomic_uint at_most;    /* bytes per call; 0: as many as asked */
	atomic_uint calls;
} faults;

static void faults_clear(void)
{
	atomic_store(&faults.write_error, 0);
	atomic_store(&faults.dsync_error, 0);
	atomic_store(&faults.at_most, 0);
	atomic_store(&faults.calls, 0);
}

static ssize_t transfer(long call, int fd, const struct iovec *iov, int iovcnt, off_t offset,
			int flags)
{
	unsigned at_most = atomic_load(&faults.at_most);
	struct iovec first = iov[0];

	atomic_fetch_add(&faults.calls, 1);
	if (at_most && first.iov_len > at_most) {
		first.iov_len = at_most;
		return syscall(call, fd, &first, 1, offset, 0L, flags);
	}
	return syscall(call, fd, iov, iovcnt, offset, 0L, flags);
}

ssize_t preadv2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
{
	return transfer(SYS_preadv2, fd, iov, iovcnt, offset, flags);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
{
	int error = atomic_load(&faults.write_error);

	if (!error && (flags & RWF_DSYNC))
		error = atomic_load(&faults.dsync_error);
	if (error) {
		errno = error;
		return -1;
	}
	return transfer(SYS_pwritev2, fd, iov, iovcnt, offset, flags);
}

static int before_each(void **state)
{
	faults_clear();
	return 0;
}

/* --- failure ---------------------------------------------------------------------------------- */

static void test_short_transfers(void **state)
{
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s/short,size=8M", dir));
	atomic_store(&faults.at_most, 1000);
	write_at(be, 512, 64 * KIB, 1);
	fill(64 * KIB, 2);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, MIB, 64 * KIB), 0);
	assert_true(atomic_load(&faults.calls) >= 2 * 64);
	assert_data(be, 512, 64 * KIB, 1);
	assert_data(be, MIB, 64 * KIB, 2);
	assert_true(atomic_load(&faults.calls) >= 4 * 64);
	weft_backend_close(be);
}

/* Somebody cut it meanwhile: what is gone is an error, not zeroes. */
static void test_short_file(void **state)
{
	const char *path = text("%s/cut", dir);
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s,size=1M", path));
	write_at(be, 0, MIB, 1);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(do_io(be, WEFT_IO_READ, 0, got, 4096, 4096), -EIO);
	assert_int_equal(do_io(be, WEFT_IO_READ, 0, got, 0, 8192), -EIO);
	assert_data(be, 0, 4096, 1);
	weft_backend_close(be);
}

/* A pipe cannot be synced: for the time of one flush it stands where the file was. */
static void test_sync_fails(void **state)
{
	const char *spec = text("file:%s/sync,size=1M", dir);
	struct weft_backend *be;
	int pipes[2], fd, saved;

	need_reactor();
	be = open_spec(spec);
	assert_durable(be);
	fd = weft_disk_of(be)->fd;
	saved = dup(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(dup2(pipes[1], fd), fd);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), -EINVAL);
	assert_int_equal(dup2(saved, fd), fd);
	close(pipes[0]);
	close(pipes[1]);
	close(saved);
	assert_not_durable(be);
	weft_backend_close(be);
	be = open_spec(spec);
	assert_durable(be);
	weft_backend_close(be);
}

static void test_fua_fails(void **state)
{
	static const struct {
		int dsync_error, write_error, rc;
		bool durable; /* afterwards */
	} table[] = {
		{ EIO, 0, -EIO, false },
		{ ENOSPC, 0, -EIO, false }, /* found out when written back: pages are lost */
		{ 0, ENOSPC, -ENOSPC, true },
		{ 0, EIO, -EIO, true },
		{ 0, EDQUOT, -EDQUOT, true },
	};
	struct weft_backend *be;

	need_reactor();
	for_each_row(i, table) {
		be = open_spec(text("file:%s/fua.%zu,size=1M", dir, i));
		atomic_store(&faults.dsync_error, table[i].dsync_error);
		atomic_store(&faults.write_error, table[i].write_error);
		fill(4096, 1);
		assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 4096), table[i].rc);
		faults_clear();
		if (table[i].durable)
			assert_durable(be);
		else
			assert_not_durable(be);
		weft_backend_close(be);
	}
}

static void test_file_limit(void **state)
{
	struct rlimit before, limit;
	struct weft_backend *be;
	struct weft_err err = { "" };

	need_reactor();
	be = open_spec(text("file:%s/limit,size=2M", dir));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = MIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill(8192, 1);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, MIB, 4096), -EFBIG);
	/* Half of it fits. */
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, MIB - 4096, 8192), -EFBIG);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, MIB, 4096), -EFBIG);
	assert_int_equal(weft_backend_resize(be, 4 * MIB, &err), -EFBIG);
	assert_string_equal(err.text,
			    text("file:%s/limit,size=2M: cannot resize it: File too large", dir));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_durable(be);
	weft_backend_close(be);
}

/* --- all of it -------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup(name, before_each)

static const struct CMUnitTest with_engine[] = {
	TEST(test_short_file),
	TEST(test_sync_fails),
	TEST(test_file_limit),
};

/* What fails here is a wrapped system call. */
static const struct CMUnitTest with_faults[] = {
	TEST(test_short_transfers),
	TEST(test_fua_fails),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("faults on epoll", with_faults, start_epoll, stop);
	failed += cmocka_run_group_tests_name("failure on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("failure on io_uring", with_engine, start_uring,
					      stop);
	return failed ? 1 : 0;
}
