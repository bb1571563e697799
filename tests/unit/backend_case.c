/* backend_case.c - a backend on a reactor of the test's own. */
#include "backend_case.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct weft_reactor *reactor; /* NULL: this kernel has no such engine */
char dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

int make_dir(void **state)
{
	strcpy(dir, "/tmp/weft-test-backend.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

int remove_dir(void **state)
{
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int start(void **state, enum weft_engine engine)
{
	struct weft_reactor_options options = { .engine = engine, .cpu = -1 };
	struct weft_err err = { "" };

	if (make_dir(state) < 0)
		return -1;
	if (weft_reactor_create(&reactor, &options, &err) < 0) {
		reactor = NULL;
		print_message("skipped: %s\n", err.text);
	}
	return 0;
}

int start_epoll(void **state)
{
	return start(state, WEFT_ENGINE_EPOLL);
}

int start_uring(void **state)
{
	return start(state, WEFT_ENGINE_URING);
}

int stop(void **state)
{
	if (reactor)
		weft_reactor_destroy(reactor);
	reactor = NULL;
	return remove_dir(state);
}

void skip_because(const char *why)
{
	print_message("skipped: %s\n", why);
	skip();
}

void need_reactor(void)
{
	if (!reactor)
		skip_because("no such engine here");
}

void need_root(void)
{
	if (geteuid())
		skip_because("not root");
}

const char *text(const char *fmt, ...)
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

int try_open(struct weft_backend **be, const char *spec_text, struct weft_err *err)
{
	struct weft_spec spec;
	int rc;

	err->text[0] = '\0';
	rc = weft_spec_parse(spec_text, &spec, err);
	return rc < 0 ? rc : weft_backend_open(be, &spec, err);
}

struct weft_backend *open_spec(const char *spec_text)
{
	struct weft_backend *be = NULL;
	struct weft_err err;

	if (try_open(&be, spec_text, &err) < 0)
		fail_msg("%s", err.text);
	return be;
}

void assert_refused(const char *spec_text, int rc, const char *sentence)
{
	struct weft_backend *be;
	struct weft_err err;

	assert_int_equal(try_open(&be, spec_text, &err), rc);
	assert_string_equal(err.text, sentence);
}

void job_done(struct weft_io *io, int rc)
{
	struct job *job = container_of(io, struct job, io);

	assert_false(job->ended);
	job->ended = true;
	job->rc = rc;
}

void job_submit(struct weft_msg *msg)
{
	struct job *job = container_of(msg, struct job, msg);
	int rc = weft_backend_submit(job->be, &job->io);

	if (rc < 0)
		job_done(&job->io, rc);
}

static int do_piece(struct weft_backend *be, enum weft_io_kind kind, unsigned flags, void *buf,
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

/* What clears comes in pieces, as the backend wants them. */
int do_io(struct weft_backend *be, enum weft_io_kind kind, unsigned flags, void *buf,
	  uint64_t offset, uint64_t length)
{
	bool clears = kind == WEFT_IO_ZERO || kind == WEFT_IO_TRIM;
	uint64_t most = clears ? be->clear_max : 0, end = offset + length, piece;
	int rc = 0;

	if (!most)
		return do_piece(be, kind, flags, buf, offset, length);
	for (; !rc && offset < end; offset += piece) {
		piece = most - offset % most;
		if (piece > end - offset)
			piece = end - offset;
		rc = do_piece(be, kind, flags, NULL, offset, piece);
	}
	return rc;
}

_Alignas(4096) unsigned char data[4 * MIB], got[4 * MIB];

/* Differs from byte to byte and from block to block. */
void fill(uint64_t length, unsigned seed)
{
	assert_in_range(length, 0, sizeof(data));
	for (uint64_t i = 0; i < length; i++)
		data[i] = (unsigned char)(i * 7 + i / 512 + seed) | 1;
}

void write_at(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed)
{
	fill(length, seed);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, offset, length), 0);
}

void read_at(struct weft_backend *be, uint64_t offset, uint64_t length)
{
	assert_in_range(length, 0, sizeof(got));
	memset(got, 0xee, length);
	assert_int_equal(do_io(be, WEFT_IO_READ, 0, got, offset, length), 0);
}

void assert_data(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed)
{
	fill(length, seed);
	read_at(be, offset, length);
	assert_memory_equal(got, data, length);
}

void assert_zeroes(struct weft_backend *be, uint64_t offset, uint64_t length)
{
	read_at(be, offset, length);
	for (uint64_t i = 0; i < length; i++)
		if (got[i])
			fail_msg("%s: byte %" PRIu64 " is %02x", be->spec, offset + i, got[i]);
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

void try_backend(struct weft_backend *be)
{
	try_write_read(be);
	try_durable(be);
	try_erase(be, WEFT_IO_ZERO, 0);
	try_erase(be, WEFT_IO_ZERO, WEFT_IO_FUA);
	try_erase(be, WEFT_IO_ZERO, WEFT_IO_UNMAP);
	try_erase(be, WEFT_IO_TRIM, 0);
}

void assert_not_durable(struct weft_backend *be)
{
	fill(4096, 3);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), -ENOTRECOVERABLE);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 4096), -ENOTRECOVERABLE);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_FUA, NULL, 0, 4096), -ENOTRECOVERABLE);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, 4096), 0);
	assert_data(be, 0, 4096, 3);
}

void assert_durable(struct weft_backend *be)
{
	fill(4096, 4);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 4096), 0);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
}

off_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

void make_file(const char *path, off_t size)
{
	_cleanup_(weft_closep) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
}

void resize_ok(struct weft_backend *be, uint64_t size)
{
	struct weft_err err = { "" };

	if (weft_backend_resize(be, size, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(be->size, size);
}
