/* test_backend.c - SPECs, and what every backend does with io, on both engines.
 *
 * The system calls that the epoll engine makes are wrapped here, so that a disk can fail, and be
 * short, on demand. What needs root (a full disk, a file system without holes, a block device) is
 * skipped without. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/backend.h"
#include "backend/disk.h"
#include "base/cleanup.h"
#include "base/region.h"

#define KIB      1024ull
#define MIB      (1024 * KIB)
#define GIB      (1024 * MIB)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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

/* --- the bench -------------------------------------------------------------------------------- */

static struct weft_reactor *reactor; /* NULL: this kernel has no such engine */
static bool wrapped;                 /* the engine calls the functions above */
static char dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/weft-test-backend.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int start(void **state, enum weft_engine engine)
{
	struct weft_reactor_options options = { .engine = engine, .cpu = -1 };
	struct weft_err err = { "" };

	if (make_dir(state) < 0)
		return -1;
	wrapped = engine == WEFT_ENGINE_EPOLL;
	if (weft_reactor_create(&reactor, &options, &err) < 0) {
		reactor = NULL;
		print_message("skipped: %s\n", err.text);
	}
	return 0;
}

static int start_epoll(void **state)
{
	return start(state, WEFT_ENGINE_EPOLL);
}

static int start_uring(void **state)
{
	return start(state, WEFT_ENGINE_URING);
}

static int stop(void **state)
{
	if (reactor)
		weft_reactor_destroy(reactor);
	reactor = NULL;
	return remove_dir(state);
}

static int before_each(void **state)
{
	faults_clear();
	return 0;
}

static void skip_because(const char *why)
{
	print_message("skipped: %s\n", why);
	skip();
}

static void need_reactor(void)
{
	if (!reactor)
		skip_because("no such engine here");
}

static void need_root(void)
{
	if (geteuid())
		skip_because("not root");
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
	static char texts[64][512];
	static unsigned next;
	char *at = texts[next++ % COUNT(texts)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(at, sizeof(texts[0]), fmt, ap);
	va_end(ap);
	return at;
}

static int try_open(struct weft_backend **be, const char *spec_text, struct weft_err *err)
{
	struct weft_spec spec;
	int rc;

	err->text[0] = '\0';
	rc = weft_spec_parse(spec_text, &spec, err);
	return rc < 0 ? rc : weft_backend_open(be, &spec, err);
}

static struct weft_backend *open_spec(const char *spec_text)
{
	struct weft_backend *be = NULL;
	struct weft_err err;

	if (try_open(&be, spec_text, &err) < 0)
		fail_msg("%s", err.text);
	return be;
}

static void assert_refused(const char *spec_text, int rc, const char *sentence)
{
	struct weft_backend *be;
	struct weft_err err;

	assert_int_equal(try_open(&be, spec_text, &err), rc);
	assert_string_equal(err.text, sentence);
}

struct job {
	struct weft_msg msg;
	struct weft_backend *be;
	struct weft_io io;
	bool ended;
	int rc;
};

static void job_done(struct weft_io *io, int rc)
{
	struct job *job = container_of(io, struct job, io);

	assert_false(job->ended);
	job->ended = true;
	job->rc = rc;
}

static void job_submit(struct weft_msg *msg)
{
	struct job *job = container_of(msg, struct job, msg);
	int rc = weft_backend_submit(job->be, &job->io);

	if (rc < 0)
		job_done(&job->io, rc);
}

static int do_io(struct weft_backend *be, enum weft_io_kind kind, unsigned flags, void *buf,
		 uint64_t offset, uint64_t length)
{
	struct job job = {
		.msg.fn = job_submit,
		.be = be,
		.io = { .kind = kind,
			.flags = flags,
			.buf = buf,
			.offset = offset,
			.length = length,
			.done = job_done },
	};

	weft_reactor_post(reactor, &job.msg);
	for (int turns = 0; !job.ended && turns < 10000; turns++)
		weft_reactor_turn(reactor, 10);
	assert_true(job.ended);
	return job.rc;
}

static _Alignas(4096) unsigned char data[4 * MIB], got[4 * MIB];

/* Differs from byte to byte and from block to block. */
static void fill(uint64_t length, unsigned seed)
{
	assert_in_range(length, 0, sizeof(data));
	for (uint64_t i = 0; i < length; i++)
		data[i] = (unsigned char)(i * 7 + i / 512 + seed) | 1;
}

static void write_at(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed)
{
	fill(length, seed);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, offset, length), 0);
}

static void read_at(struct weft_backend *be, uint64_t offset, uint64_t length)
{
	assert_in_range(length, 0, sizeof(got));
	memset(got, 0xee, length);
	assert_int_equal(do_io(be, WEFT_IO_READ, 0, got, offset, length), 0);
}

static void assert_data(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed)
{
	fill(length, seed);
	read_at(be, offset, length);
	assert_memory_equal(got, data, length);
}

static void assert_zeroes(struct weft_backend *be, uint64_t offset, uint64_t length)
{
	read_at(be, offset, length);
	for (uint64_t i = 0; i < length; i++)
		if (got[i])
			fail_msg("%s: byte %" PRIu64 " is %02x", be->spec, offset + i, got[i]);
}

/* --- SPECs ------------------------------------------------------------------------------------ */

#define UUID  "2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b"
#define UUID2 "2F1C3B7E-52A4-4C0E-9D3A-6B8F0E1D2C3B"

static const struct {
	const char *text;
	struct weft_spec spec;
} good[] = {
	{ "mem:1G", { .type = "mem", .arg = "1G", .size = GIB } },
	{ "mem:512", { .type = "mem", .arg = "512", .size = 512 } },
	{ "mem:4K,block=4096", { .type = "mem", .arg = "4K", .size = 4096, .block = 4096 } },
	{ "mem:1M,block=4K,nsid=7",
	  { .type = "mem", .arg = "1M", .size = MIB, .block = 4096, .nsid = 7 } },
	{ "null:1T", { .type = "null", .arg = "1T", .size = 1024 * GIB } },
	{ "null:1g,ro", { .type = "null", .arg = "1g", .size = GIB, .read_only = true } },
	{ "null:4k,nsid=1024", { .type = "null", .arg = "4k", .size = 4096, .nsid = 1024 } },
	{ "file:/a", { .type = "file", .arg = "/a" } },
	{ "file:/a:b=c,size=10G", { .type = "file", .arg = "/a:b=c", .size = 10 * GIB } },
	{ "file:a b,direct,ro,size=1536",
	  { .type = "file", .arg = "a b", .size = 1536, .read_only = true, .direct = true } },
	{ "file:/a,uuid=" UUID, { .type = "file", .arg = "/a", .uuid = UUID } },
	{ "file:/a,uuid=" UUID2, { .type = "file", .arg = "/a", .uuid = UUID } },
	{ "block:/dev/sdb,block=512", { .type = "block", .arg = "/dev/sdb", .block = 512 } },
};

static void test_spec_good(void **state)
{
	struct weft_err err = { "" };
	struct weft_spec spec;

	for (size_t i = 0; i < COUNT(good); i++) {
		const struct weft_spec *want = &good[i].spec;

		if (weft_spec_parse(good[i].text, &spec, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(spec.type, want->type);
		assert_string_equal(spec.ops->type, want->type);
		assert_string_equal(spec.arg, want->arg);
		assert_string_equal(spec.uuid, want->uuid);
		assert_int_equal(spec.size, want->size);
		assert_int_equal(spec.block, want->block);
		assert_int_equal(spec.nsid, want->nsid);
		assert_int_equal(spec.read_only, want->read_only);
		assert_int_equal(spec.direct, want->direct);
	}
}

#define TYPES      "mem:SIZE, null:SIZE, file:PATH[,size=SIZE][,direct], block:PATH"
#define A_UUID     "a UUID such as " UUID
#define A_NSID     "a number from 1 to 1024"
#define MEM_KEYS   "block, nsid, uuid, ro"
#define FILE_KEYS  "size, direct, " MEM_KEYS
#define NOT_A_SIZE "is not a size; expected mem:SIZE, such as mem:1G"

static const struct {
	const char *text;
	int rc;
	const char *why; /* behind "TEXT: " */
} bad[] = {
	{ "", -EINVAL, "unknown type \"\"; expected one of " TYPES },
	{ "disk:/a", -EINVAL, "unknown type \"disk\"; expected one of " TYPES },
	{ "/srv/a.img", -EINVAL, "unknown type \"/srv/a.img\"; expected one of " TYPES },
	{ ":1G", -EINVAL, "unknown type \"\"; expected one of " TYPES },
	{ "mem", -EINVAL, "expected mem:SIZE" },
	{ "mem:", -EINVAL, "expected mem:SIZE" },
	{ "mem,ro", -EINVAL, "expected mem:SIZE" },
	{ "file:,size=1G", -EINVAL, "expected file:PATH[,size=SIZE][,direct]" },
	{ "block:", -EINVAL, "expected block:PATH" },
	{ "mem:lots", -EINVAL, "\"lots\" " NOT_A_SIZE },
	{ "mem:0", -EINVAL, "\"0\" " NOT_A_SIZE },
	{ "mem:-1", -EINVAL, "\"-1\" " NOT_A_SIZE },
	{ "mem:1GB", -EINVAL, "\"1GB\" is not a size; write 1G" },
	{ "mem:1GiB", -EINVAL, "\"1GiB\" is not a size; write 1G" },
	{ "mem:0GB", -EINVAL, "\"0GB\" " NOT_A_SIZE },
	{ "mem:1B", -EINVAL, "\"1B\" " NOT_A_SIZE },
	{ "file:/a,size=10MiB", -EINVAL, "key \"size\" cannot be \"10MiB\"; write 10M" },
	{ "mem:99999P", -ERANGE, "99999P is too large" },
	{ "mem:8192P", -ERANGE, "8192P is too large" },
	{ "mem:1000", -EINVAL, "the size is not a multiple of the block, 512 bytes" },
	{ "mem:1536,block=4096", -EINVAL, "the size is not a multiple of the block, 4096 bytes" },
	{ "file:/a,block=4096,size=512", -EINVAL,
	  "the size is not a multiple of the block, 4096 bytes" },
	{ "mem:1G,", -EINVAL, "mem takes no key \"\"; expected one of " MEM_KEYS },
	{ "mem:1G,direct", -EINVAL, "mem takes no key \"direct\"; expected one of " MEM_KEYS },
	{ "mem:1G,size=1G", -EINVAL, "mem takes no key \"size\"; expected one of " MEM_KEYS },
	{ "block:/a,direct", -EINVAL, "block takes no key \"direct\"; expected one of " MEM_KEYS },
	{ "file:/a,sice=1G", -EINVAL, "file takes no key \"sice\"; expected one of " FILE_KEYS },
	{ "file:/a,=1G", -EINVAL, "file takes no key \"\"; expected one of " FILE_KEYS },
	{ "file:/a,ro,ro", -EINVAL, "key \"ro\" is given twice" },
	{ "file:/a,size=1G,size=1G", -EINVAL, "key \"size\" is given twice" },
	{ "file:/a,ro=1", -EINVAL, "key \"ro\" takes no value" },
	{ "file:/a,direct=", -EINVAL, "key \"direct\" takes no value" },
	{ "file:/a,size", -EINVAL,
	  "key \"size\" needs a value; expected a size such as 512M or 10G" },
	{ "file:/a,size=", -EINVAL,
	  "key \"size\" cannot be \"\"; expected a size such as 512M or 10G" },
	{ "file:/a,size=0", -EINVAL,
	  "key \"size\" cannot be \"0\"; expected a size such as 512M or 10G" },
	{ "file:/a,size=99999P", -ERANGE, "key \"size\": 99999P is too large" },
	{ "mem:1G,block=1024", -EINVAL, "key \"block\" cannot be \"1024\"; expected 512 or 4096" },
	{ "mem:1G,block", -EINVAL, "key \"block\" needs a value; expected 512 or 4096" },
	{ "mem:1G,nsid=0", -EINVAL, "key \"nsid\" cannot be \"0\"; expected " A_NSID },
	{ "mem:1G,nsid=4294967295", -EINVAL,
	  "key \"nsid\" cannot be \"4294967295\"; expected " A_NSID },
	{ "mem:1G,nsid=99999999999999999999", -EINVAL,
	  "key \"nsid\" cannot be \"99999999999999999999\"; expected " A_NSID },
	{ "mem:1G,nsid=1x", -EINVAL, "key \"nsid\" cannot be \"1x\"; expected " A_NSID },
	{ "mem:1G,nsid=-1", -EINVAL, "key \"nsid\" cannot be \"-1\"; expected " A_NSID },
	{ "mem:1G,uuid=1", -EINVAL, "key \"uuid\" cannot be \"1\"; expected " A_UUID },
	{ "mem:1G,uuid=00000000-0000-0000-0000-000000000000", -EINVAL,
	  "key \"uuid\" cannot be \"00000000-0000-0000-0000-000000000000\"; expected " A_UUID },
	{ "mem:1G,uuid=2f1c3b7e-52a4-4c0e-9d3a_6b8f0e1d2c3b", -EINVAL,
	  "key \"uuid\" cannot be \"2f1c3b7e-52a4-4c0e-9d3a_6b8f0e1d2c3b\"; expected " A_UUID },
	{ "mem:1G,uuid=2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3g", -EINVAL,
	  "key \"uuid\" cannot be \"2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3g\"; expected " A_UUID },
};

static void test_spec_bad(void **state)
{
	struct weft_spec spec;

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct weft_err err = { "" };

		assert_int_equal(weft_spec_parse(bad[i].text, &spec, &err), bad[i].rc);
		assert_string_equal(err.text, text("%s: %s", bad[i].text, bad[i].why));
	}
}

static void test_spec_long(void **state)
{
	char spec_text[2048] = "file:/";
	struct weft_err err = { "" };
	struct weft_spec spec;

	memset(spec_text + 6, 'a', 1500);
	assert_int_equal(weft_spec_parse(spec_text, &spec, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "aaa: longer than 1023 bytes"));
}

static void test_usage(void **state)
{
	assert_string_equal(weft_backend_usage(0), "mem:SIZE");
	assert_string_equal(weft_backend_usage(2), "file:PATH[,size=SIZE][,direct]");
	assert_null(weft_backend_usage(4));
	assert_null(weft_backend_usage(1000));
}

/* --- opening ---------------------------------------------------------------------------------- */

static off_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

static void make_file(const char *path, off_t size)
{
	_cleanup_(weft_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
}

static void test_open_canonical(void **state)
{
	static const char *const table[][2] = {
		{ "mem:1024K,block=4096,nsid=3,uuid=" UUID, "mem:1M" },
		{ "null:1024G,ro", "null:1T,ro" },
		{ "file:a,ro,nsid=1", "file:%s/a,ro" },
		{ "file:a,block=4096,size=1024K", "file:%s/a,size=1M" },
		{ "file:b,size=1M", "file:%s/b,size=1M" },
	};
	struct weft_backend *be;
	char cwd[512];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	make_file("a", MIB);
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *at = strstr(table[i][1], "%s");
		const char *want = table[i][1];

		if (at)
			want = text("%.*s%s%s", (int)(at - want), want, dir, at + 2);
		for (int again = 0; again < 2; again++) {
			be = open_spec(again ? want : table[i][0]);
			assert_string_equal(be->spec, want);
			weft_backend_close(be);
		}
	}
	assert_int_equal(chdir(cwd), 0);
}

static void test_open_creates_sparse(void **state)
{
	const char *path = text("%s/new", dir), *spec = text("file:%s,size=1T", path);
	struct weft_backend *be = open_spec(spec);
	struct stat st;

	assert_int_equal(be->size, 1024 * GIB);
	assert_true(be->thin);
	assert_in_range(be->ops->used(be), 0, MIB);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1024 * GIB);
	assert_int_equal(st.st_mode & 0777, 0600);
	weft_backend_close(be);
}

static void test_open_grows_never_cuts(void **state)
{
	const char *path = text("%s/grows", dir);
	struct weft_backend *be;

	make_file(path, MIB);
	be = open_spec(text("file:%s,size=2M", path));
	assert_int_equal(be->size, 2 * MIB);
	assert_int_equal(file_size(path), 2 * MIB);
	weft_backend_close(be);
	assert_refused(text("file:%s,size=1M", path), -EINVAL,
		       text("file:%s: it has 2M, more than size=, and is not cut; expected size=2M",
			    path));
	assert_refused(text("file:%s,size=4M,ro", path), -EROFS,
		       text("file:%s: it has 2M, less than size=, and \"ro\" does not let it grow",
			    path));
	assert_int_equal(file_size(path), 2 * MIB);
}

static void test_open_refused(void **state)
{
	const char *path = text("%s/x", dir);

	assert_refused(text("file:%s", path), -ENOENT,
		       text("file:%s: no such file; size=SIZE would create it", path));
	assert_refused(text("file:%s,size=1M,ro", path), -ENOENT,
		       text("file:%s: cannot open it: No such file or directory", path));
	assert_refused(text("file:%s/y,size=1M", path), -ENOENT,
		       text("file:%s/y: cannot create it: No such file or directory", path));
	assert_refused(text("file:%s", dir), -EINVAL,
		       text("file:%s: it is not a regular file", dir));
	assert_refused(text("block:%s", path), -ENOENT,
		       text("block:%s: cannot open it: No such file or directory", path));
	assert_refused("block:/dev/null", -ENOTBLK, "block:/dev/null: it is not a block device");
	make_file(path, 0);
	assert_refused(text("file:%s", path), -EINVAL,
		       text("file:%s: a size of 0 is too small", path));
	make_file(path, 1000);
	assert_refused(text("file:%s", path), -EINVAL,
		       text("file:%s: a size of 1000 is not a multiple of the block, 512 bytes",
			    path));
	make_file(path, 1536);
	assert_refused(text("file:%s,block=4096", path), -EINVAL,
		       text("file:%s: a size of 1536 is not a multiple of the block, 4096 bytes",
			    path));
	assert_refused(text("block:%s", path), -ENOTBLK,
		       text("block:%s: it is a regular file; expected file:%s", path, path));
}

static uid_t started_as;

/* Nothing is forbidden to root. */
static void become_nobody(const char *path)
{
	started_as = getuid();
	if (started_as)
		return;
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
	assert_int_equal(setresuid(65534, 65534, 0), 0);
}

static void test_open_forbidden(void **state)
{
	const char *path = text("%s/forbidden", dir);

	make_file(path, MIB);
	assert_int_equal(chmod(path, 0400), 0);
	become_nobody(path);
	assert_refused(text("file:%s", path), -EACCES,
		       text("file:%s: cannot open it for writing: Permission denied; \"ro\" would "
			    "serve it read only",
			    path));
	assert_int_equal(chmod(path, 0), 0);
	assert_refused(text("file:%s", path), -EACCES,
		       text("file:%s: cannot open it: Permission denied; this user may not reach it",
			    path));
	if (!started_as)
		assert_int_equal(setresuid(0, 0, 0), 0);
}

static void test_open_mem_too_large(void **state)
{
	assert_refused("mem:4096P", -ENOMEM,
		       "mem:4096P: cannot reserve the memory: Cannot allocate memory");
}

/* Larger than any file system takes: made, refused, gone. */
static void test_open_leaves_nothing(void **state)
{
	const char *path = text("%s/huge", dir);
	struct weft_backend *be;
	struct weft_err err;
	int rc = try_open(&be, text("file:%s,size=8191P", path), &err);

	if (rc == 0) {
		weft_backend_close(be);
		skip_because("this file system takes 8191P");
	}
	assert_string_equal(err.text, text("file:%s: cannot make it as large as size=: %s", path,
					   strerror(-rc)));
	assert_int_equal(file_size(path), -1);
}

static void test_open_locks(void **state)
{
	const char *path = text("%s/locked", dir);
	const char *rw = text("file:%s,size=1M", path), *ro = text("file:%s,ro", path);
	const char *why = text("file:%s: it is in use: another namespace, target or program has "
			       "locked it",
			       path);
	struct weft_backend *be = open_spec(rw), *other;

	assert_refused(rw, -EBUSY, why);
	assert_refused(ro, -EBUSY, why);
	weft_backend_close(be);
	be = open_spec(ro);
	other = open_spec(ro);
	assert_refused(rw, -EBUSY, why);
	weft_backend_close(other);
	weft_backend_close(be);
	weft_backend_close(open_spec(rw));
}

/* --- io, the same on every backend that stores ------------------------------------------------- */

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

static void try_write_read(struct weft_backend *be)
{
	uint64_t block = be->block_min;

	assert_zeroes(be, 0, MIB);
	write_at(be, 0, block, 1);
	write_at(be, block, 3 * block, 2);
	write_at(be, 8 * MIB - block, block, 3);
	write_at(be, 2 * MIB, 4 * MIB, 4);
	assert_data(be, 0, block, 1);
	assert_data(be, block, 3 * block, 2);
	assert_data(be, 8 * MIB - block, block, 3);
	assert_data(be, 2 * MIB, 4 * MIB, 4);
	assert_zeroes(be, 4 * block, MIB);
	write_at(be, block, block, 5);
	assert_data(be, 0, block, 1);
	assert_data(be, block, block, 5);
}

static void try_durable(struct weft_backend *be)
{
	fill(64 * KIB, 9);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, MIB, 64 * KIB), 0);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_data(be, MIB, 64 * KIB, 9);
	assert_int_equal(do_io(be, WEFT_IO_READ, WEFT_IO_FUA, got, MIB, 64 * KIB), 0);
	assert_memory_equal(got, data, 64 * KIB);
}

/* One block in, one block short of the end: edges stay, whatever the page. */
static void try_erase(struct weft_backend *be, enum weft_io_kind kind, unsigned flags)
{
	uint64_t block = be->block_min, length = MIB - 2 * block;

	write_at(be, 3 * MIB, MIB, 6);
	assert_int_equal(do_io(be, kind, flags, NULL, 3 * MIB + block, length), 0);
	fill(MIB, 6);
	read_at(be, 3 * MIB, MIB);
	assert_memory_equal(got, data, block);
	assert_memory_equal(got + MIB - block, data + MIB - block, block);
	assert_zeroes(be, 3 * MIB + block, length);
	write_at(be, 3 * MIB, 4 * block, 7);
	assert_int_equal(do_io(be, kind, flags, NULL, 3 * MIB + block, block), 0);
	assert_data(be, 3 * MIB, block, 7);
	assert_zeroes(be, 3 * MIB + block, block);
}

static void test_io(void **state)
{
	struct weft_backend *be;

	need_reactor();
	for (size_t i = 0; i < COUNT(kinds); i++) {
		be = open_spec(spec_of(&kinds[i]));
		try_write_read(be);
		try_durable(be);
		try_erase(be, WEFT_IO_ZERO, 0);
		try_erase(be, WEFT_IO_ZERO, WEFT_IO_FUA);
		try_erase(be, WEFT_IO_ZERO, WEFT_IO_UNMAP);
		try_erase(be, WEFT_IO_TRIM, 0);
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
	for (size_t k = 0; k < COUNT(kinds); k++) {
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

/* --- space ------------------------------------------------------------------------------------ */

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
	assert_in_range(be->ops->used(be), 1, 2 * MIB);
	weft_backend_close(be);
}

/* --- resize ----------------------------------------------------------------------------------- */

static void resize_ok(struct weft_backend *be, uint64_t size)
{
	struct weft_err err = { "" };

	if (weft_backend_resize(be, size, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(be->size, size);
}

static void test_resize(void **state)
{
	struct weft_backend *be;

	need_reactor();
	for (size_t i = 0; i < COUNT(kinds); i++) {
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

	for (size_t i = 0; i < COUNT(table); i++) {
		struct weft_err err = { "" };

		assert_int_equal(weft_backend_resize(be, table[i].size, &err), table[i].rc);
		assert_string_equal(err.text, table[i].why);
		assert_int_equal(be->size, MIB);
		assert_string_equal(be->spec, "mem:1M");
	}
	weft_backend_close(be);
}

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

/* --- memory that an adapter knows ---------------------------------------------------------------- */

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
	weft_region_view_end(&view);
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
	weft_region_view_end(&view);
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
	for (size_t i = 0; i < COUNT(clearing); i++) {
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
	weft_region_view_end(&view);
}

/* --- failure ---------------------------------------------------------------------------------- */

static void test_short_transfers(void **state)
{
	struct weft_backend *be;

	need_reactor();
	assert_true(wrapped);
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

static void assert_not_durable(struct weft_backend *be)
{
	fill(4096, 3);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), -EIO);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 4096), -EIO);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_FUA, NULL, 0, 4096), -EIO);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, 4096), 0);
	assert_data(be, 0, 4096, 3);
}

static void assert_durable(struct weft_backend *be)
{
	fill(4096, 4);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 4096), 0);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
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
	assert_true(wrapped);
	for (size_t i = 0; i < COUNT(table); i++) {
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

/* --- with root -------------------------------------------------------------------------------- */

static const char *mount_at(const char *type, const char *options)
{
	const char *path = text("%s/%s", dir, type);

	mkdir(path, 0700); /* may be there from the test before */
	if (mount("none", path, type, 0, options) < 0)
		skip_because(text("cannot mount %s: %s", type, strerror(errno)));
	return path;
}

static int unmount_all(void **state)
{
	umount2(text("%s/ext4", dir), MNT_DETACH);
	umount2(text("%s/tmpfs", dir), MNT_DETACH);
	umount2(text("%s/ramfs", dir), MNT_DETACH);
	return 0;
}

static void test_full(void **state)
{
	struct weft_backend *be;

	need_reactor();
	need_root();
	be = open_spec(text("file:%s/full,size=16M", mount_at("tmpfs", "size=256k")));
	fill(MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, MIB), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, MIB, 4096), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, MIB, 4096), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 0, 16 * MIB), 0);
	assert_durable(be);
	weft_backend_close(be);
}

/* ramfs knows neither holes nor direct I/O. */
static void test_no_holes(void **state)
{
	struct weft_backend *be;
	const char *path;

	need_reactor();
	need_root();
	path = text("%s/a", mount_at("ramfs", NULL));
	be = open_spec(text("file:%s,size=8M", path));
	write_at(be, MIB, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, MIB, 4 * MIB), 0);
	assert_data(be, MIB, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_FUA, NULL, MIB + 512, 3 * MIB), 0);
	assert_zeroes(be, MIB + 512, 3 * MIB);
	fill(4 * MIB, 1);
	read_at(be, MIB, 4 * MIB);
	assert_memory_equal(got, data, 512);
	assert_memory_equal(got + 3 * MIB + 512, data + 3 * MIB + 512, MIB - 512);
	weft_backend_close(be);
	assert_refused(text("file:%s,direct", path), -EINVAL,
		       text("file:%s: its file system does not do direct I/O; leave \"direct\" out",
			    path));
	assert_refused(text("file:%s2,direct,size=1M", path), -EINVAL,
		       text("file:%s2: its file system does not do direct I/O; leave \"direct\" "
			    "out",
			    path));
	assert_int_equal(file_size(text("%s2", path)), -1);
}

/* A loop device over @path; gone with the descriptor. */
static int loop_attach(const char *path, unsigned block, char *device, size_t size)
{
	_cleanup_(weft_closep) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	_cleanup_(weft_closep) int file = open(path, O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (__u32)file,
		.block_size = block,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int number, fd;

	number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	if (number < 0)
		skip_because("no loop devices");
	snprintf(device, size, "/dev/loop%d", number);
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		skip_because(text("%s: %s", device, strerror(errno)));
	return fd;
}

static void make_ext4(const char *device)
{
	if (system(text("PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F -O ^has_journal -N 16 %s",
			device)))
		skip_because("no mkfs.ext4");
}

/* A disk that has room for its file system and little more, which the file system does not know:
 * writes go into the page cache, and are lost when they are written back. */
static int lossy_ext4(void)
{
	const char *path = text("%s/disk", mount_at("tmpfs", "size=2m")),
		   *at = text("%s/ext4", dir);
	char device[32];
	int loop;

	make_file(path, 64 * MIB);
	loop = loop_attach(path, 512, device, sizeof(device));
	make_ext4(device);
	if (mkdir(at, 0700) < 0 || mount(device, at, "ext4", 0, "errors=continue") < 0)
		skip_because(text("cannot mount ext4: %s", strerror(errno)));
	return loop;
}

static void test_writeback_fails(void **state)
{
	struct weft_backend *flush, *fua;
	int loop, rc;

	need_reactor();
	need_root();
	loop = lossy_ext4();
	flush = open_spec(text("file:%s/ext4/flush,size=16M", dir));
	fua = open_spec(text("file:%s/ext4/fua,size=16M", dir));
	write_at(flush, 0, 4 * MIB, 1);
	rc = do_io(flush, WEFT_IO_FLUSH, 0, NULL, 0, 0);
	assert_true(rc == -EIO || rc == -ENOSPC);
	assert_not_durable(flush);
	fill(MIB, 1);
	rc = do_io(fua, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, MIB);
	assert_true(rc == -EIO || rc == -ENOSPC);
	assert_not_durable(fua);
	weft_backend_close(flush);
	weft_backend_close(fua);
	close(loop);
}

static void try_block(const char *device)
{
	struct weft_backend *be = open_spec(text("block:%s", device));

	assert_int_equal(be->size, 8 * MIB);
	assert_false(be->thin);
	assert_string_equal(be->spec, text("block:%s", device));
	try_write_read(be);
	try_durable(be);
	try_erase(be, WEFT_IO_ZERO, WEFT_IO_FUA);
	try_erase(be, WEFT_IO_TRIM, 0);
	weft_backend_close(be);
}

static void try_block_refused(const char *device, const char *path)
{
	const char *in_use = text("block:%s: it is in use (mounted, or opened by another program)",
				  device);
	struct weft_backend *be = open_spec(text("block:%s", device));
	struct weft_err err = { "" };

	assert_refused(text("block:%s", device), -EBUSY, in_use);
	assert_refused(text("block:%s,ro", device), -EBUSY, in_use);
	assert_refused(text("file:%s", device), -EINVAL,
		       text("file:%s: it is a block device; expected block:%s", device, device));
	assert_int_equal(weft_backend_resize(be, 16 * MIB, &err), -EINVAL);
	assert_string_equal(err.text,
			    text("block:%s: the device has 8M, not 16M; resize the device first",
				 device));
	weft_backend_close(be);
}

static void test_block(void **state)
{
	const char *path = text("%s/disk", dir);
	struct weft_backend *be;
	char device[32];
	int loop;

	need_reactor();
	need_root();
	make_file(path, 8 * MIB);
	loop = loop_attach(path, 512, device, sizeof(device));
	try_block(device);
	try_block_refused(device, path);
	be = open_spec(text("block:%s", device));
	assert_int_equal(be->block_min, 512);
	assert_int_equal(truncate(path, 16 * MIB), 0);
	assert_int_equal(ioctl(loop, LOOP_SET_CAPACITY, 0), 0);
	resize_ok(be, 16 * MIB);
	write_at(be, 15 * MIB, MIB, 5);
	assert_data(be, 15 * MIB, MIB, 5);
	weft_backend_close(be);
	close(loop);
}

static void test_block_4096(void **state)
{
	const char *path = text("%s/disk4096", dir);
	struct weft_backend *be;
	char device[32];
	int loop;

	need_reactor();
	need_root();
	make_file(path, 8 * MIB);
	loop = loop_attach(path, 4096, device, sizeof(device));
	be = open_spec(text("block:%s", device));
	assert_int_equal(be->block_min, 4096);
	assert_int_equal(be->align, 4096);
	weft_backend_close(be);
	assert_refused(text("block:%s,block=512", device), -EINVAL,
		       text("block:%s: block=512 is too small; it needs 4096", device));
	try_block(device);
	be = open_spec(text("block:%s,ro", device));
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, 4096), -EROFS);
	assert_data(be, 8 * MIB - 4096, 4096, 3);
	weft_backend_close(be);
	close(loop);
}

/* --- all of it -------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup(name, before_each)

static const struct CMUnitTest without_engine[] = {
	TEST(test_spec_good),
	TEST(test_spec_bad),
	TEST(test_spec_long),
	TEST(test_usage),
	TEST(test_open_canonical),
	TEST(test_open_creates_sparse),
	TEST(test_open_grows_never_cuts),
	TEST(test_open_refused),
	TEST(test_open_forbidden),
	TEST(test_open_mem_too_large),
	TEST(test_open_leaves_nothing),
	TEST(test_open_locks),
	TEST(test_resize_spec),
	TEST(test_resize_refused),
	TEST(test_resize_mem_stays),
	TEST(test_mem_is_a_region),
	TEST(test_resize_mem_pinned),
};

static const struct CMUnitTest with_engine[] = {
	TEST(test_io),
	TEST(test_io_reopen),
	TEST(test_io_many),
	TEST(test_null),
	TEST(test_read_only),
	TEST(test_mem_space),
	TEST(test_mem_pinned),
	TEST(test_mem_without_region),
	TEST(test_file_space),
	TEST(test_resize),
	TEST(test_resize_edge),
	TEST(test_short_file),
	TEST(test_sync_fails),
	TEST(test_file_limit),
	cmocka_unit_test_setup_teardown(test_full, before_each, unmount_all),
	cmocka_unit_test_setup_teardown(test_no_holes, before_each, unmount_all),
	cmocka_unit_test_setup_teardown(test_writeback_fails, before_each, unmount_all),
	TEST(test_block),
	TEST(test_block_4096),
};

/* What fails here is a wrapped system call, and io_uring makes none. */
static const struct CMUnitTest with_faults[] = {
	TEST(test_short_transfers),
	TEST(test_fua_fails),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("spec and open", without_engine, make_dir,
					      remove_dir);
	failed += cmocka_run_group_tests_name("io on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("faults on epoll", with_faults, start_epoll, stop);
	failed += cmocka_run_group_tests_name("io on io_uring", with_engine, start_uring, stop);
	return failed ? 1 : 0;
}
