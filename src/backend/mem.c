/* mem.c - memory, allocated when touched, gone when closed.
 *
 *   base                     size                              reserved
 *    ├── readable, writable ──┼── (was once: still readable) ──┤── no access ──┤
 *
 * Other reactors read and write while the size changes, and replies may leave straight from map().
 * So the memory never moves and is never unmapped before close: address space to grow into is
 * reserved at the start, which costs nothing; growing makes more of it accessible, shrinking only
 * frees the pages. A read that races with a shrink finds zeroes, not a fault.
 *
 * Extents that fill up get huge pages (huge.c).
 *
 * The room is a region (memory/region.h), so that an adapter can register it, a granule at a time
 * as they are used. It is a memfd, so that a successor can adopt it: see weft_backend_adopt().
 * That has a price: a page that is read before it was written is allocated, too. Nobody can
 * truncate the memfd, and only bytes inside of it are accessible, so the other process cannot cause
 * a fault.
 *
 * The accessible part ends with a whole granule. If it cannot be a region, and beyond it where it
 * was extended, a transport that needs one copies.
 *
 * Several reactors may use the same block at the same time: its guard makes them take turns, so
 * that a block is read and written whole.
 *
 * Invariant: base never changes; [base, base + size) is accessible; memory beyond the size is
 * zeroed again before it is used. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/huge.h"
#include "backend/internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/size.h"
#include "memory/region.h"

/* A namespace may grow this far, or to this many times its first size, and beyond if nothing else
 * has taken the addresses there. Two thousand such rooms fit the address space; later namespaces
 * get none. */
#define ROOM_MIN   (64ULL << 30)
#define ROOM_TIMES 4
/* Registered at a time, and then allocated and pinned. */
#define GRANULE (1ULL << 20)

struct mem {
	struct weft_backend be;
	int fd;
	char *base;
	uint64_t reserved, accessible; /* bytes from @base on */
	struct weft_region *region;    /* NULL: it could not be one */
	struct weft_huge huge;
};

static struct mem *mem_of(struct weft_backend *be)
{
	return container_of(be, struct mem, be);
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t page_down(uint64_t bytes)
{
	return bytes & ~(page_size() - 1);
}

static uint64_t page_up(uint64_t bytes)
{
	return page_down(bytes + page_size() - 1);
}

static uint64_t granule_up(uint64_t bytes)
{
	return (bytes + GRANULE - 1) & ~(GRANULE - 1);
}

/* --- io --------------------------------------------------------------------------------------- */

static bool mem_copy_out(struct mem *mem, struct weft_io *io)
{
	const char *from = mem->base + io->offset;

	assert(io->offset + io->length <= mem->accessible);
	if (!weft_guard_try_read(mem->be.guard, from, io->length))
		return false;
	memcpy(io->buf, from, io->length);
	weft_guard_unlock_read(mem->be.guard, from, io->length);
	return true;
}

static bool mem_copy_in(struct mem *mem, struct weft_io *io)
{
	char *to = mem->base + io->offset;

	assert(io->offset + io->length <= mem->accessible);
	if (!weft_guard_try_write(mem->be.guard, to, io->length))
		return false;
	memcpy(to, io->buf, io->length);
	weft_guard_unlock_write(mem->be.guard, to, io->length);
	weft_huge_wrote(&mem->huge, io->offset, io->length);
	return true;
}

/* Whole pages are freed, except those that an adapter has registered. */
static void zero_range(struct mem *mem, uint64_t from, uint64_t to)
{
	uint64_t first = page_up(from), last = page_down(to);

	assert(from <= to && to <= mem->accessible);
	if (first >= last) {
		memset(mem->base + from, 0, to - from);
		return;
	}
	memset(mem->base + from, 0, first - from);
	weft_huge_cleared(&mem->huge, first, last - first);
	weft_region_clear(mem->region, mem->base + first, last - first);
	memset(mem->base + last, 0, to - last);
}

static bool mem_clear_range(struct mem *mem, struct weft_io *io)
{
	uint64_t from = io->offset, to = from + io->length;

	assert(from / WEFT_HUGE_BYTES == (to - 1) / WEFT_HUGE_BYTES);
	if (!weft_guard_try_write(mem->be.guard, mem->base + from, io->length))
		return false;
	weft_reactor_bulk_spend(weft_reactor_self(), (uint32_t)io->length);
	zero_range(mem, from, to);
	weft_guard_unlock_write(mem->be.guard, mem->base + from, io->length);
	return true;
}

/* false: the guard refuses it, others use the same blocks. There is nothing to flush: no data
 * outlives the process, and no host was told otherwise. */
static bool mem_try_io(struct mem *mem, struct weft_io *io)
{
	if (io->kind == WEFT_IO_READ && !mem_copy_out(mem, io))
		return false;
	if (io->kind == WEFT_IO_WRITE && !mem_copy_in(mem, io))
		return false;
	if (weft_io_clears(io) && !mem_clear_range(mem, io))
		return false;
	io->done(io, 0);
	return true;
}

static void mem_retry_io(struct weft_io *io)
{
	if (!mem_try_io(mem_of(io->be), io))
		weft_retry_later(weft_reactor_self(), &io->retry);
}

static void mem_on_bulk_turn(struct weft_task *task)
{
	mem_retry_io(container_of(task, struct weft_io, bulk_task));
}

/* While it waits, a clear keeps readers out of its blocks, so it must not wait behind others. */
static void mem_on_retry(struct weft_task *task)
{
	struct weft_io *io = container_of(task, struct weft_io, retry.task);

	if (weft_io_clears(io))
		weft_reactor_bulk_retry(weft_reactor_self(), &io->bulk_task);
	else
		mem_retry_io(io);
}

/* --- extents ---------------------------------------------------------------------------------- */

enum {
	SEEKS_MAX = 32,
	SEEK_COST = 8 << 10, /* of one search step, in bytes copied */
	RESIDENT_MAX = 512,
};

/* Not by lseek(), which visits every page to the end: this visits some pages only. A swapped out
 * page ends the data as a hole does; the next step finds that it goes on. */
static int resident_end(struct weft_backend *be, uint64_t at, uint64_t *end)
{
	uint64_t page = page_size(), first = page_down(at), pages = (*end - first - 1) / page + 1;
	unsigned char resident[RESIDENT_MAX];
	uint64_t n = 0;

	assert(at < *end && *end <= mem_of(be)->accessible);
	if (pages > RESIDENT_MAX)
		pages = RESIDENT_MAX;
	if (mincore(mem_of(be)->base + first, pages * page, resident) < 0)
		return -errno;
	while (n < pages && resident[n] & 1)
		n++;
	if (n * page < *end - first)
		*end = first + n * page;
	return 0;
}

static void mem_find_extents(struct weft_io *io)
{
	weft_reactor_bulk_spend(weft_reactor_self(), SEEKS_MAX * SEEK_COST);
	io->done(io, weft_extents_search(io, SEEKS_MAX, resident_end));
}

/* --- submit ----------------------------------------------------------------------------------- */

static int mem_submit(struct weft_backend *be, struct weft_io *io)
{
	if (io->kind == WEFT_IO_EXTENTS) {
		mem_find_extents(io);
		return 0;
	}
	if (mem_try_io(mem_of(be), io))
		return 0;
	weft_retry_init(&io->retry, mem_on_retry);
	weft_task_init(&io->bulk_task, mem_on_bulk_turn);
	weft_retry_later(weft_reactor_self(), &io->retry);
	return 0;
}

static void *mem_map(struct weft_backend *be, uint64_t offset)
{
	assert(offset < be->size);
	return mem_of(be)->base + offset;
}

/* --- size ------------------------------------------------------------------------------------- */

static char *reserve_addresses(void *at, uint64_t bytes, int flags)
{
	void *got = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
			 -1, 0);

	return got == MAP_FAILED ? NULL : got;
}

static uint64_t room_for(uint64_t size)
{
	if (size > INT64_MAX / ROOM_TIMES)
		return size;
	return size * ROOM_TIMES > ROOM_MIN ? size * ROOM_TIMES : ROOM_MIN;
}

/* Aligned to a huge page. */
static char *reserve_aligned(uint64_t bytes)
{
	char *got = reserve_addresses(NULL, bytes + WEFT_HUGE_BYTES, 0), *base;

	assert(!(bytes & (GRANULE - 1)));
	if (!got)
		return NULL;
	base = got + -(uintptr_t)got % WEFT_HUGE_BYTES;
	if (base > got)
		munmap(got, (size_t)(base - got));
	munmap(base + bytes, (size_t)(got + WEFT_HUGE_BYTES - base));
	return base;
}

/* With room to grow, or else just enough: then other namespaces get some, too. */
static int reserve_room(struct mem *mem, uint64_t size)
{
	mem->reserved = granule_up(room_for(size));
	mem->base = reserve_aligned(mem->reserved);
	if (mem->base)
		return 0;
	mem->reserved = granule_up(size);
	mem->base = reserve_aligned(mem->reserved);
	return mem->base ? 0 : -ENOMEM;
}

/* More addresses behind the room, if nothing else has them. */
static int extend_room(struct mem *mem, uint64_t size)
{
	uint64_t more = granule_up(size) - mem->reserved;
	char *end = mem->base + mem->reserved, *got;

	assert(granule_up(size) > mem->reserved);
	got = reserve_addresses(end, more, MAP_FIXED_NOREPLACE);
	if (got != end) { /* a kernel without the flag takes the address as a hint */
		if (got)
			munmap(got, more);
		return -ENOMEM;
	}
	mem->reserved += more;
	return 0;
}

/* The old process may have made it larger than we need; it never shrinks. */
static int make_large_enough(int fd, uint64_t size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size >= size)
		return 0;
	return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

/* A core dump must not, and cannot, contain what hosts have stored. */
static int make_accessible(struct mem *mem, uint64_t size)
{
	uint64_t from = mem->accessible, to = granule_up(size);
	int rc = make_large_enough(mem->fd, to);

	assert(to <= mem->reserved);
	if (rc < 0 || to <= from)
		return rc;
	if (mmap(mem->base + from, to - from, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 mem->fd, (off_t)from) == MAP_FAILED)
		return -errno;
	madvise(mem->base + from, to - from, MADV_DONTDUMP);
	mem->accessible = to;
	weft_huge_grow(&mem->huge, to);
	return 0;
}

static int grow_memory(struct mem *mem, uint64_t size)
{
	int rc = granule_up(size) > mem->reserved ? extend_room(mem, size) : 0;

	if (rc == 0)
		rc = make_accessible(mem, size);
	/* Writes that were under way during a shrink may have come after the pages were freed. */
	if (rc == 0)
		zero_range(mem, mem->be.size, size);
	return rc;
}

static int mem_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	struct mem *mem = mem_of(be);
	char text[32];
	int rc = 0;

	if (size > be->size)
		rc = grow_memory(mem, size);
	else
		zero_range(mem, size, be->size);
	if (rc == 0)
		return 0;
	weft_size_format(size, text, sizeof(text));
	return weft_fail(err, rc, "%s: cannot grow to %s in place: %s", be->spec, text,
			 strerror(-rc));
}

/* --- open and close --------------------------------------------------------------------------- */

static void mem_close(struct weft_backend *be)
{
	struct mem *mem = mem_of(be);

	weft_region_remove(mem->region);
	weft_huge_fini(&mem->huge);
	weft_guard_destroy(be->guard);
	if (mem->base)
		munmap(mem->base, mem->reserved);
	weft_closep(&mem->fd);
	weft_backend_fini(be);
	free(mem);
}

static int create_memory(void)
{
	_cleanup_(weft_closep) int fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -errno;
	return take_fd(&fd);
}

static int mem_init(struct mem *mem, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = weft_backend_init(&mem->be, spec, spec->size, WEFT_BLOCK_MIN, err);

	if (rc < 0)
		return rc;
	mem->be.clear_max = WEFT_HUGE_BYTES;
	rc = reserve_room(mem, spec->size);
	if (rc == 0)
		weft_huge_init(&mem->huge, mem->base, mem->reserved);
	if (rc == 0)
		rc = weft_guard_create(&mem->be.guard, mem->base);
	if (rc == 0 && mem->fd < 0)
		rc = mem->fd = create_memory();
	if (rc >= 0)
		rc = make_accessible(mem, spec->size);
	if (rc < 0)
		return weft_spec_fail(spec, err, rc, "cannot reserve the memory: %s",
				      strerror(-rc));
	return 0;
}

/* Owns @fd; -1: new memory. */
static int mem_new(struct weft_backend **be, const struct weft_spec *spec, int fd,
		   struct weft_err *err)
{
	struct mem *mem = calloc(1, sizeof(*mem));
	int rc;

	if (!mem) {
		weft_closep(&fd);
		return weft_spec_fail(spec, err, -ENOMEM, "out of memory");
	}
	mem->fd = fd;
	rc = mem_init(mem, spec, err);
	if (rc < 0) {
		mem_close(&mem->be);
		return rc;
	}
	weft_region_add(&mem->region, mem->base, mem->reserved, GRANULE, NULL);
	*be = &mem->be;
	return 0;
}

static int mem_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	return mem_new(be, spec, -1, err);
}

static int mem_adopt(struct weft_backend **be, const struct weft_spec *spec, int fd,
		     struct weft_err *err)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0 && seals & F_SEAL_SHRINK)
		return mem_new(be, spec, fd, err);
	weft_closep(&fd);
	return weft_spec_fail(spec, err, -EINVAL, "what was handed over is not its memory");
}

static bool mem_warning(const struct weft_spec *spec, struct weft_err *why)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);

	if (spec->size / page_size() <= pages)
		return false;
	weft_spec_fail(spec, why, 0,
		       "more than this machine's memory, %.1f GiB; a host that fills it ends the "
		       "target",
		       (double)(pages * page_size()) / (1 << 30));
	return true;
}

static int mem_descriptor(struct weft_backend *be)
{
	return mem_of(be)->fd;
}

const struct weft_backend_ops weft_mem_ops = {
	.type = "mem",
	.usage = "mem:SIZE",
	.arg_is_size = true,
	.warning = mem_warning,
	.open = mem_open,
	.adopt = mem_adopt,
	.descriptor = mem_descriptor,
	.submit = mem_submit,
	.extents = true,
	.map = mem_map,
	.resize = mem_resize,
	.close = mem_close,
};
