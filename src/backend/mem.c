/* mem.c - anonymous memory, paid when touched, gone when closed.
 *
 *   base                     size                              reserved
 *    ├── readable, writable ──┼── (was once: still readable) ──┤── no access ──┤
 *
 * Other reactors read and write at base while the size changes, and sends may be under way straight
 * out of map(). So the memory never moves and is never unmapped before close: address space to grow
 * into is reserved at the start, which costs nothing, growing makes more of it accessible, shrinking
 * only gives the pages back. A read that races with a shrink finds zeroes, not a fault.
 *
 * The room is a region, so that an adapter can be told of it, a granule at a time as they are used.
 * What is accessible ends with a whole granule. If it cannot be a region, and beyond it where it
 * was extended, a transport that needs one copies.
 *
 * Invariant: base never changes; [base, base + size) is accessible; what lies beyond the size is
 * zeroed again before it comes back. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/types.h"
#include "base/log.h"
#include "base/region.h"
#include "base/size.h"

/* It may grow this far, or this many times its size at opening, and beyond if nothing else has taken
 * the addresses there. Two thousand such rooms fit the address space; who comes later gets none. */
#define ROOM_MIN   (64ULL << 30)
#define ROOM_TIMES 4
/* Registered at a time, and then paid for and pinned. */
#define GRANULE (1ULL << 20)

struct mem {
	struct weft_backend be;
	char *base;
	uint64_t reserved;
	struct weft_region *region; /* NULL: it could not be one */
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

/* --- io ------------------------------------------------------------------------------------- */

/* Whole pages go back to the system, except those that an adapter knows. */
static void zero(struct mem *mem, uint64_t from, uint64_t to)
{
	uint64_t first = page_up(from), last = page_down(to);

	if (first >= last) {
		memset(mem->base + from, 0, to - from);
		return;
	}
	memset(mem->base + from, 0, first - from);
	weft_region_clear(mem->region, mem->base + first, last - first);
	memset(mem->base + last, 0, to - last);
}

static int mem_submit(struct weft_backend *be, struct weft_io *io)
{
	struct mem *mem = mem_of(be);

	switch (io->kind) {
	case WEFT_IO_READ:
		memcpy(io->buf, mem->base + io->offset, io->length);
		break;
	case WEFT_IO_WRITE:
		memcpy(mem->base + io->offset, io->buf, io->length);
		break;
	case WEFT_IO_ZERO:
	case WEFT_IO_TRIM:
		zero(mem, io->offset, io->offset + io->length);
		break;
	case WEFT_IO_FLUSH: /* nothing here outlives the process, and nobody was told otherwise */
		break;
	}
	io->done(io, 0);
	return 0;
}

static void *mem_map(struct weft_backend *be, uint64_t offset)
{
	return mem_of(be)->base + offset;
}

/* --- size ----------------------------------------------------------------------------------- */

static char *reserve(void *at, uint64_t bytes, int flags)
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

/* With room to grow, or else just enough: then there is something left for the others. */
static int reserve_room(struct mem *mem, uint64_t size)
{
	mem->reserved = granule_up(room_for(size));
	mem->base = reserve(NULL, mem->reserved, 0);
	if (mem->base)
		return 0;
	mem->reserved = granule_up(size);
	mem->base = reserve(NULL, mem->reserved, 0);
	return mem->base ? 0 : -ENOMEM;
}

/* Beyond the room there may be more, if nothing was put there since. */
static int extend_room(struct mem *mem, uint64_t size)
{
	uint64_t more = granule_up(size) - mem->reserved;
	char *end = mem->base + mem->reserved, *got;

	got = reserve(end, more, MAP_FIXED_NOREPLACE);
	if (got != end) { /* a kernel that does not know the flag takes the address as a hint */
		if (got)
			munmap(got, more);
		return -ENOMEM;
	}
	mem->reserved += more;
	return 0;
}

/* A core dump must not hold, and cannot hold, what hosts have stored. */
static int make_accessible(struct mem *mem, uint64_t size)
{
	if (mprotect(mem->base, granule_up(size), PROT_READ | PROT_WRITE) < 0)
		return -errno;
	madvise(mem->base, granule_up(size), MADV_DONTDUMP);
	return 0;
}

static int grow(struct mem *mem, uint64_t size)
{
	int rc = granule_up(size) > mem->reserved ? extend_room(mem, size) : 0;

	if (rc == 0)
		rc = make_accessible(mem, size);
	/* Writes that were under way when it shrank may have come after the pages went. */
	if (rc == 0)
		zero(mem, mem->be.size, size);
	return rc;
}

static int mem_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	struct mem *mem = mem_of(be);
	char text[32];
	int rc = 0;

	if (size > be->size)
		rc = grow(mem, size);
	else
		zero(mem, size, be->size);
	if (rc == 0)
		return 0;
	weft_size_format(size, text, sizeof(text));
	return weft_fail(err, rc, "%s: cannot grow to %s in place: %s", be->spec, text,
			 strerror(-rc));
}

/* --- open and close ------------------------------------------------------------------------- */

static void mem_close(struct weft_backend *be)
{
	struct mem *mem = mem_of(be);

	weft_region_remove(mem->region);
	if (mem->base)
		munmap(mem->base, mem->reserved);
	weft_backend_fini(be);
	free(mem);
}

static int mem_init(struct mem *mem, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = weft_backend_init(&mem->be, spec, spec->size, WEFT_BLOCK_MIN, err);

	if (rc < 0)
		return rc;
	rc = reserve_room(mem, spec->size);
	if (rc == 0)
		rc = make_accessible(mem, spec->size);
	if (rc < 0)
		return weft_spec_fail(spec, err, rc, "cannot reserve the memory: %s",
				      strerror(-rc));
	return 0;
}

static int mem_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	struct mem *mem = calloc(1, sizeof(*mem));
	int rc;

	if (!mem)
		return weft_spec_fail(spec, err, -ENOMEM, "out of memory");
	rc = mem_init(mem, spec, err);
	if (rc < 0) {
		mem_close(&mem->be);
		return rc;
	}
	if (mem->be.size / page_size() > (uint64_t)sysconf(_SC_PHYS_PAGES))
		weft_warn(
			"%s: more than this machine's memory; a host that fills it ends the target",
			mem->be.spec);
	weft_region_add(&mem->region, mem->base, mem->reserved, GRANULE, NULL);
	*be = &mem->be;
	return 0;
}

const struct weft_backend_ops weft_mem_ops = {
	.type = "mem",
	.usage = "mem:SIZE",
	.arg_is_size = true,
	.open = mem_open,
	.submit = mem_submit,
	.map = mem_map,
	.resize = mem_resize,
	.close = mem_close,
};
