/* test_backend_fail.c - disks that fail, and are short, and what must be durable when.
 *
 * The system calls that the epoll engine makes are wrapped here, so that they fail on demand and
 * tell what a loss of power would take; io_uring makes none. */
#include "backend_case.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend/disk.h"
#include "running.h"

/* --- a disk that misbehaves ------------------------------------------------------------------- */

#define ODD_SYNCS 3

static struct {
	atomic_int write_error; /* every write fails with it */
	atomic_int dsync_error; /* writes with RWF_DSYNC do */
	atomic_int punch_error; /* every fallocate() does */
	atomic_uint at_most;    /* bytes per call; 0: as many as asked */
	atomic_uint calls;
	atomic_bool dirty;     /* something was changed that no sync has covered */
	atomic_uint odd_syncs; /* of syncs to come: the first fails, the others wait for @go */
	sem_t go;
} faults;

static void faults_clear(void)
{
	atomic_store(&faults.write_error, 0);
	atomic_store(&faults.dsync_error, 0);
	atomic_store(&faults.punch_error, 0);
	atomic_store(&faults.at_most, 0);
	atomic_store(&faults.calls, 0);
	atomic_store(&faults.dirty, false);
}

static int refuse(int error)
{
	errno = error;
	return -1;
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
	if (error)
		return refuse(error);
	if (!(flags & RWF_DSYNC))
		atomic_store(&faults.dirty, true);
	return transfer(SYS_pwritev2, fd, iov, iovcnt, offset, flags);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	int error = atomic_load(&faults.punch_error);

	if (error)
		return refuse(error);
	atomic_store(&faults.dirty, true);
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

int fdatasync(int fd)
{
	unsigned odd = atomic_load(&faults.odd_syncs);

	while (odd && !atomic_compare_exchange_weak(&faults.odd_syncs, &odd, odd - 1))
		;
	if (odd == ODD_SYNCS)
		return refuse(EIO);
	if (odd)
		sem_wait(&faults.go);
	atomic_store(&faults.dirty, false);
	return (int)syscall(SYS_fdatasync, fd);
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

/* The kernel tells one of them that it lost pages. Whoever is answered later has lost them as well. */
static void test_syncs_under_way(void **state)
{
	struct job jobs[ODD_SYNCS] = { 0 };
	unsigned ended = 0, lost = 0;
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s/several,size=1M", dir));
	assert_int_equal(sem_init(&faults.go, 0, 0), 0);
	atomic_store(&faults.odd_syncs, ODD_SYNCS);
	for (unsigned i = 0; i < ODD_SYNCS; i++) {
		jobs[i].msg.fn = job_submit;
		jobs[i].be = be;
		jobs[i].io.kind = WEFT_IO_FLUSH;
		jobs[i].io.done = job_done;
		weft_reactor_post(reactor, &jobs[i].msg);
	}
	for (int turns = 0; ended < ODD_SYNCS && turns < 10000; turns++) {
		weft_reactor_turn(reactor, 10);
		ended = lost = 0;
		for (unsigned i = 0; i < ODD_SYNCS; i++) {
			ended += jobs[i].ended;
			lost += jobs[i].ended && jobs[i].rc == -EIO;
		}
		if (lost)
			sem_post(&faults.go);
	}
	assert_int_equal(ended, ODD_SYNCS);
	assert_int_equal(lost, 1);
	for (unsigned i = 0; i < ODD_SYNCS; i++)
		assert_true(jobs[i].rc == -EIO || jobs[i].rc == -ENOTRECOVERABLE);
	assert_not_durable(be);
	weft_backend_close(be);
	sem_destroy(&faults.go);
}

/* What is answered as durable is: of the write, of zeroes however they are made, of what is read. */
static void test_durable_when_answered(void **state)
{
	static const struct {
		enum weft_io_kind kind;
		unsigned flags;
		int punch_error;
		bool dirty; /* afterwards */
	} table[] = {
		{ WEFT_IO_WRITE, 0, 0, true },
		{ WEFT_IO_WRITE, WEFT_IO_FUA, 0, false },
		{ WEFT_IO_ZERO, 0, 0, true },
		{ WEFT_IO_ZERO, WEFT_IO_FUA, 0, false },
		{ WEFT_IO_ZERO, WEFT_IO_FUA | WEFT_IO_UNMAP, 0, false },
		{ WEFT_IO_ZERO, 0, EOPNOTSUPP, true },
		{ WEFT_IO_ZERO, WEFT_IO_FUA, EOPNOTSUPP, false },
	};
	struct weft_backend *be;

	need_reactor();
	be = open_spec(text("file:%s/durable,size=1M", dir));
	fill(4096, 1);
	for_each_row(i, table) {
		faults_clear();
		atomic_store(&faults.punch_error, table[i].punch_error);
		assert_int_equal(do_io(be, table[i].kind, table[i].flags, data, 0, 4096), 0);
		assert_int_equal(atomic_load(&faults.dirty), table[i].dirty);
		atomic_store(&faults.dirty, true);
		assert_int_equal(do_io(be, WEFT_IO_READ, WEFT_IO_FUA, got, 0, 4096), 0);
		assert_false(atomic_load(&faults.dirty));
	}
	weft_backend_close(be);
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
	TEST(test_syncs_under_way),
	TEST(test_durable_when_answered),
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
