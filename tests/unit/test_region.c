/* test_region.c - the registry of memory: what is found, who is told when it goes, which pages
 * stay.
 *
 * Whether a page stayed is seen as an adapter would see it: a pipe holds the page itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/pool.h"
#include "memory/region.h"
#include "running.h"

static char *addr(uintptr_t at)
{
	return (char *)at;
}

static struct weft_region *add(void *base, size_t size, size_t granule)
{
	struct weft_region *region = NULL;
	struct weft_err err = { "" };

	if (weft_region_add(&region, base, size, granule, &err) < 0)
		fail_msg("%s", err.text);
	return region;
}

/* --- what is found ---------------------------------------------------------------------------- */

static const struct {
	uintptr_t at;
	size_t len;
	int found; /* which of the three; -1: none */
} find_cases[] = {
	{ 0x10000, 0x1000, 0 },    { 0x10000, 0, 0 },     { 0x10fff, 1, 0 },
	{ 0x10000, 0x1001, -1 },   { 0x0ffff, 1, -1 },    { 0x0ffff, 2, -1 },
	{ 0x11000, 0, -1 },        { 0x11000, 1, -1 },    { 0x20000, 0x10000, 1 },
	{ 0x2fff0, 0x10, 1 },      { 0x2fff0, 0x20, -1 }, { 0x30000, 0x800, 2 },
	{ 0x307ff, 1, 2 },         { 0x30800, 1, -1 },    { 0x20000, 0x10800, -1 },
	{ 0x20000, SIZE_MAX, -1 }, { 0, 1, -1 },          { UINTPTR_MAX, 1, -1 },
};

static void finds_what_holds_all_of_it(void **state)
{
	struct weft_region_view view = { 0 };
	struct weft_region *regions[] = {
		add(addr(0x10000), 0x1000, 0),
		add(addr(0x20000), 0x10000, 0x1000),
		add(addr(0x30000), 0x800, 0),
	};

	for (size_t round = 0; round < 2; round++) {
		for_each_row(i, find_cases) {
			int want = find_cases[i].found;
			struct weft_region *got = weft_region_find(&view, addr(find_cases[i].at),
								   find_cases[i].len);

			if (got != (want < 0 ? NULL : regions[want]))
				fail_msg("case %zu", i);
		}
	}
	for (size_t i = 0; i < COUNT(regions); i++)
		weft_region_remove(regions[i]);
	assert_null(weft_region_find(&view, addr(0x10000), 1));
	weft_region_view_free(&view);
}

static const struct {
	uintptr_t at;
	size_t size;
	int rc;
} add_cases[] = {
	{ 0x20000, 0x1000, -EEXIST },
	{ 0x1f000, 0x1001, -EEXIST },
	{ 0x20fff, 1, -EEXIST },
	{ 0x1f000, 0x3000, -EEXIST },
	{ 0x20800, 0x10, -EEXIST },
	{ 0x1f000, 0x1000, 0 },
	{ 0x21000, 1, 0 },
	{ 0, 1, -EINVAL },
	{ 0x40000, 0, -EINVAL },
	{ UINTPTR_MAX - 1, 2, -EINVAL },
};

static void refuses_what_overlaps(void **state)
{
	struct weft_region *first = add(addr(0x20000), 0x1000, 0);

	for_each_row(i, add_cases) {
		struct weft_region *region = NULL;
		struct weft_err err = { "" };
		int rc = weft_region_add(&region, addr(add_cases[i].at), add_cases[i].size, 0,
					 &err);

		if (rc != add_cases[i].rc || !rc == !region || !rc == !!err.text[0])
			fail_msg("case %zu: rc %d: %s", i, rc, err.text);
		weft_region_remove(region);
	}
	weft_region_remove(first);
}

/* Many, in no order, and half of them again gone: against a plain table. */
static void finds_among_many(void **state)
{
	enum { N = 500, STEP = 0x3000 };
	struct weft_region *regions[N] = { NULL };
	struct weft_region_view view = { 0 };

	for (unsigned i = 0; i < N; i++)
		regions[i * 7 % N] = add(addr(0x100000 + i * 7 % N * STEP), 0x2000, 0);
	for (unsigned i = 0; i < N; i += 2) {
		assert_ptr_equal(weft_region_find(&view, regions[i]->base, 0x2000), regions[i]);
		weft_region_remove(regions[i]);
		regions[i] = NULL;
	}
	for (unsigned i = 0; i < N; i++) {
		char *at = addr(0x100000 + i * STEP);

		assert_ptr_equal(weft_region_find(&view, at + 0x1000, 0x1000), regions[i]);
		assert_null(weft_region_find(&view, at + 0x2000, 1));
		assert_ptr_equal(weft_region_at(at), regions[i]);
		assert_null(weft_region_at(at + 1));
	}
	for (unsigned i = 0; i < N; i++)
		weft_region_remove(regions[i]);
	weft_region_view_free(&view);
}

/* --- dma-bufs --------------------------------------------------------------------------------- */

static void keeps_a_descriptor_of_its_own(void **state)
{
	struct weft_region_view view = { 0 };
	struct weft_region *region = NULL;
	int fd = memfd_create("not a dma-buf", MFD_CLOEXEC);
	int own;

	assert_int_equal(weft_region_add_dmabuf(&region, addr(0x50000), 0x1000, -1, 0, NULL),
			 -EBADF);
	assert_int_equal(weft_region_add_dmabuf(&region, addr(0x50000), 0x1000, fd, 0x2000, NULL),
			 0);
	close(fd);
	own = region->fd;
	assert_int_not_equal(fcntl(own, F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(region->kind, WEFT_REGION_DMABUF);
	assert_int_equal(region->fd_offset, 0x2000);
	assert_int_equal(atomic_load(&weft_region_dmabufs), 1);
	assert_ptr_equal(weft_region_find(&view, addr(0x50800), 0x800), region);
	weft_region_remove(region);
	assert_int_equal(atomic_load(&weft_region_dmabufs), 0);
	assert_int_equal(fcntl(own, F_GETFD), -1);
	weft_region_view_free(&view);
}

static const struct {
	uintptr_t at;
	size_t len;
	bool meets;
} meet_cases[] = {
	{ 0x60000, 0x1000, false },   { 0x60fff, 1, false }, { 0x60fff, 2, true },
	{ 0x61000, 1, true },         { 0x61fff, 1, true },  { 0x62000, 1, false },
	{ 0x5f000, 0x9000, true },    { 0x61800, 0, false }, { 0x5f000, 0x1800, false },
	{ 0x62000, SIZE_MAX, false }, { 1, SIZE_MAX, true },
};

static void sees_a_dmabuf_in_part_of_it(void **state)
{
	struct weft_region_view view = { 0 };
	struct weft_region *plain = add(addr(0x60000), 0x1000, 0), *region = NULL;
	int fd = memfd_create("not a dma-buf", MFD_CLOEXEC);

	assert_int_equal(weft_region_add_dmabuf(&region, addr(0x61000), 0x1000, fd, 0, NULL), 0);
	for_each_row(i, meet_cases) {
		if (weft_region_overlaps_dmabuf(&view, addr(meet_cases[i].at), meet_cases[i].len) !=
		    meet_cases[i].meets)
			fail_msg("case %zu", i);
	}
	weft_region_remove(region);
	weft_region_remove(plain);
	weft_region_view_free(&view);
	close(fd);
}

/* --- registrations ---------------------------------------------------------------------------- */

struct registered {
	struct weft_region_registration reg;
	struct weft_region *region;
	unsigned deregistered;
};

/* Under no lock, or a region could not come here. */
static void on_deregister(struct weft_region_registration *reg, struct weft_region *region)
{
	struct registered *r = container_of(reg, struct registered, reg);

	r->deregistered++;
	assert_ptr_equal(region, r->region);
	weft_region_remove(add(addr(0x90000), 0x1000, 0));
	weft_region_lock(region);
	weft_region_unpin(region, region->base, 1);
	weft_region_unlock(region);
}

static void register_region(struct registered *r, struct weft_region *region, void *owner)
{
	*r = (struct registered){ .reg = { .owner = owner, .deregister = on_deregister },
				  .region = region };
	weft_region_lock(region);
	assert_null(weft_region_find_registration(region, owner));
	weft_list_push(&region->registrations, &r->reg.link);
	assert_ptr_equal(weft_region_find_registration(region, owner), &r->reg);
	weft_region_pin(region, region->base, 1);
	weft_region_unlock(region);
}

static void who_tied_it_hears_that_it_goes(void **state)
{
	struct weft_region *a = add(addr(0x70000), 0x1000, 0), *b = add(addr(0x80000), 0x1000, 0);
	int one, two;
	struct registered regs[3];

	register_region(&regs[0], a, &one);
	register_region(&regs[1], a, &two);
	register_region(&regs[2], b, &one);
	weft_regions_deregister_owner(&one);
	assert_int_equal(regs[0].deregistered, 1);
	assert_int_equal(regs[1].deregistered, 0);
	assert_int_equal(regs[2].deregistered, 1);
	assert_int_equal(a->pinned, 1);
	assert_int_equal(b->pinned, 0);
	weft_regions_deregister_owner(&one);
	weft_region_remove(a);
	assert_int_equal(regs[0].deregistered, 1);
	assert_int_equal(regs[1].deregistered, 1);
	weft_region_remove(b);
	assert_int_equal(regs[2].deregistered, 1);
}

/* --- pages ------------------------------------------------------------------------------------ */

enum { PAGES = 8, GRANULE = 2 }; /* pages */

/* What somebody sees who got hold of the page at @at earlier: see hold(). */
static char look(int pipe_end)
{
	char byte;

	assert_int_equal(read(pipe_end, &byte, 1), 1);
	return byte;
}

static void hold(int pipe_end, char *at)
{
	struct iovec iov = { at, 1 };

	assert_int_equal(vmsplice(pipe_end, &iov, 1, 0), 1);
}

/* 'k': kept and cleared. 'd': dropped, so that the one who held it still sees what was there. */
static void clear_and_compare(struct weft_region *region, char *base, unsigned first,
			      unsigned count, const char *want)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ends[PAGES][2];
	char got[PAGES + 1] = "";

	for (unsigned i = 0; i < PAGES; i++) {
		memset(base + i * page, 'x', page);
		assert_int_equal(pipe(ends[i]), 0);
		hold(ends[i][1], base + i * page);
	}
	weft_region_clear(region, base + first * page, count * page);
	for (unsigned i = 0; i < PAGES; i++) {
		bool inside = i >= first && i < first + count;

		assert_int_equal(base[i * page], inside ? 0 : 'x');
		assert_int_equal(base[(i + 1) * page - 1], inside ? 0 : 'x');
		got[i] = look(ends[i][0]) == 'x' ? 'd' : 'k';
		if (!inside)
			got[i] = '-';
		close(ends[i][0]);
		close(ends[i][1]);
	}
	assert_string_equal(got, want);
}

static char *map_shared(size_t size)
{
	char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(base, MAP_FAILED);
	return base;
}

static void pinned_pages_stay(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *base = map_shared(PAGES * page);
	/* The last granule is beyond it. */
	struct weft_region *region = add(base, (PAGES - GRANULE) * page, GRANULE * page);
	struct registered r;
	int owner;

	clear_and_compare(NULL, base, 0, 8, "dddddddd");
	clear_and_compare(region, base, 1, 7, "-ddddddd");
	register_region(&r, region, &owner);
	clear_and_compare(region, base, 0, 8, "kkdddddd");
	clear_and_compare(region, base, 1, 2, "-kd-----");
	weft_region_lock(region);
	weft_region_pin(region, base + 4 * page, page + 1);
	weft_region_unlock(region);
	clear_and_compare(region, base, 0, 8, "kkddkkdd");
	clear_and_compare(region, base, 5, 3, "-----kdd");
	weft_regions_deregister_owner(&owner);
	clear_and_compare(region, base, 0, 8, "ddddkkdd");
	weft_region_lock(region);
	weft_region_pin(region, base + 4 * page, 1);
	weft_region_unpin(region, base + 5 * page, 1);
	weft_region_unlock(region);
	clear_and_compare(region, base, 0, 8, "ddddkkdd");
	weft_region_lock(region);
	weft_region_unpin(region, base + 4 * page, 1);
	weft_region_unlock(region);
	clear_and_compare(region, base, 0, 8, "dddddddd");
	weft_region_remove(region);
	weft_pages_free(base, PAGES * page);
}

static void one_pin_holds_all_where_there_are_no_granules(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *base = map_shared(PAGES * page);
	struct weft_region *region = add(base, 6 * page, 0);

	weft_region_lock(region);
	weft_region_pin(region, base + 3 * page, 1);
	weft_region_unlock(region);
	clear_and_compare(region, base, 0, 8, "kkkkkkdd");
	weft_region_remove(region);
	weft_pages_free(base, PAGES * page);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Two look for memory that stays, two make other memory come and go around it, registered with a
 * device that both let go now and then: a registration may be in the other's hands when its region
 * goes. */
enum { STAYING = 8, ROUNDS = 3000 };

struct crowd {
	struct weft_region *staying[STAYING];
	unsigned faults[4];
};

struct member {
	struct crowd *crowd;
	unsigned index;
	pthread_t thread;
};

static void *looks(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	struct weft_region_view view = { 0 };

	for (unsigned i = 0; i < ROUNDS * 10; i++) {
		struct weft_region *want = crowd->staying[i % STAYING];

		if (weft_region_find(&view, want->base + 0x100, 0x100) != want)
			crowd->faults[member->index]++;
		if (weft_region_find(&view, want->base + 0x1000, 1))
			crowd->faults[member->index]++;
	}
	weft_region_view_free(&view);
	return NULL;
}

static void free_registration(struct weft_region_registration *reg, struct weft_region *region)
{
	weft_region_lock(region);
	weft_region_unpin(region, region->base + 0x200, 0x300);
	weft_region_unlock(region);
	free(reg);
}

static void *comes_and_goes(void *arg)
{
	struct member *member = arg;
	struct weft_region_view view = { 0 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		char *at = addr(0x100000 + (i % STAYING) * 0x10000 + member->index * 0x2000);
		struct weft_region_registration *reg = malloc(sizeof(*reg));
		struct weft_region *region = NULL;

		*reg = (struct weft_region_registration){ .owner = member->crowd,
							  .deregister = free_registration };
		if (weft_region_add(&region, at, 0x1000, 0x100, NULL) < 0 ||
		    weft_region_find(&view, at, 0x1000) != region) {
			member->crowd->faults[member->index]++;
			free(reg);
			continue;
		}
		weft_region_lock(region);
		weft_list_push(&region->registrations, &reg->link);
		weft_region_pin(region, at + 0x200, 0x300);
		weft_region_unlock(region);
		if (i % 3 == 0)
			weft_regions_deregister_owner(member->crowd);
		weft_region_remove(region);
		if (weft_region_find(&view, at, 1))
			member->crowd->faults[member->index]++;
	}
	weft_region_view_free(&view);
	return NULL;
}

static void threads_find_while_others_add_and_remove(void **state)
{
	struct crowd crowd = { 0 };
	struct member members[4];

	for (unsigned i = 0; i < STAYING; i++)
		crowd.staying[i] = add(addr(0x100000 + i * 0x10000), 0x1000, 0);
	for (unsigned i = 0; i < COUNT(members); i++) {
		members[i] = (struct member){ .crowd = &crowd, .index = i };
		assert_int_equal(pthread_create(&members[i].thread, NULL,
						i < 2 ? looks : comes_and_goes, &members[i]),
				 0);
	}
	for (unsigned i = 0; i < COUNT(members); i++) {
		pthread_join(members[i].thread, NULL);
		assert_int_equal(crowd.faults[i], 0);
	}
	for (unsigned i = 0; i < STAYING; i++)
		weft_region_remove(crowd.staying[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_holds_all_of_it),
		cmocka_unit_test(refuses_what_overlaps),
		cmocka_unit_test(finds_among_many),
		cmocka_unit_test(keeps_a_descriptor_of_its_own),
		cmocka_unit_test(sees_a_dmabuf_in_part_of_it),
		cmocka_unit_test(who_tied_it_hears_that_it_goes),
		cmocka_unit_test(pinned_pages_stay),
		cmocka_unit_test(one_pin_holds_all_where_there_are_no_granules),
		cmocka_unit_test(threads_find_while_others_add_and_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
