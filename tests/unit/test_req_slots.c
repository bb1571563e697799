/* test_req_slots.c - requests' memory: the lowest free one, each once, and all that there are; and
 * what is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/transport.h"

enum { MAX = 2 * 4096, SIZE = 320 };
static_assert(SIZE >= sizeof(struct weft_req), "a slot");

static struct weft_req_slots slots;
static struct weft_req *taken[MAX];

static int set_up(void **state)
{
	slots = (struct weft_req_slots){ .size = SIZE };
	return weft_req_slots_reserve(&slots, MAX);
}

static int tear_down(void **state)
{
	weft_req_slots_unreserve(&slots, MAX);
	weft_req_slots_destroy(&slots);
	return 0;
}

static uint32_t take(void)
{
	struct weft_req *req = weft_req_slots_alloc(&slots);

	taken[req->slot] = req;
	return req->slot;
}

static void give(uint32_t at)
{
	weft_req_slots_free(&slots, taken[at]);
}

/* Nobody's bytes are anybody else's. */
static void all_in_order(void **state)
{
	for (uint32_t i = 0; i < MAX; i++) {
		assert_int_equal(take(), i);
		taken[i]->index = ~i;
	}
	for (uint32_t i = 0; i < MAX; i++)
		assert_true(taken[i]->slot == i && taken[i]->index == ~i);
}

static void more_are_wanted_than_there_were(void **state)
{
	for (uint32_t i = 0; i < MAX; i++)
		take();
	assert_int_equal(weft_req_slots_reserve(&slots, 1), 0);
	assert_int_equal(weft_req_slots_alloc(&slots)->slot, MAX);
	weft_req_slots_unreserve(&slots, 1);
}

static void the_lowest_that_came_back(void **state)
{
	static const uint32_t back[] = { 8191, 4096, 4095, 64, 63, 1, 0, 5000 };
	static const uint32_t order[] = { 0, 1, 63, 64, 4095, 4096, 5000, 8191 };

	for (uint32_t i = 0; i < MAX; i++)
		take();
	for (size_t i = 0; i < sizeof(back) / sizeof(*back); i++)
		give(back[i]);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		assert_int_equal(take(), order[i]);
}

/* Against the plainest thing that does the same. */
static void as_a_model_says(void **state)
{
	static bool used[MAX];
	uint32_t lowest, at;

	memset(used, 0, sizeof(used));
	srand(1);
	for (int turn = 0; turn < 20000; turn++) {
		at = (uint32_t)rand() % 300;
		if (used[at]) {
			used[at] = false;
			give(at);
			continue;
		}
		for (lowest = 0; used[lowest];)
			lowest++;
		assert_int_equal(take(), lowest);
		used[lowest] = true;
	}
}

static void new_ones_are_zeroed(void **state)
{
	struct weft_req *req = weft_req_slots_alloc(&slots), *other;

	assert_true(!req->state && !req->data && !req->in.at && !req->out.at);
	memset(&req->cmd, 0x5a, sizeof(req->cmd));
	weft_req_slots_free(&slots, req);
	assert_ptr_equal(weft_req_slots_alloc(&slots), req);
	other = weft_req_slots_alloc(&slots);
	assert_true(!other->cmd.common.opcode && !other->state && !other->in.at);
}

/* --- memory that is given back ---------------------------------------------------------------- */

enum { KEPT = 1024, GROUP = 64, PART_MAX = 64 * GROUP };

static size_t discarded;

void __wrap_weft_pages_discard(void *pages, size_t size);
void __real_weft_pages_discard(void *pages, size_t size);
void __wrap_weft_pages_discard(void *pages, size_t size)
{
	discarded += size / slots.size;
	__real_weft_pages_discard(pages, size);
}

/* What the slots use, in slots. */
static size_t resident(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 0;
	unsigned char there[MAX * SIZE / 4096];

	for (uint32_t block = 0; block < MAX / 4096; block++) {
		size_t bytes = 4096 * slots.size;

		assert_int_equal(mincore(taken[block * 4096], bytes, there), 0);
		for (size_t i = 0; i < bytes / page; i++)
			pages += there[i] & 1;
	}
	return pages * page / slots.size;
}

static size_t trim_all(void)
{
	size_t before = discarded;

	for (;;) {
		size_t part = discarded;
		bool all = weft_req_slots_trim(&slots);

		assert_in_range(discarded - part, 0, PART_MAX);
		if (all)
			return discarded - before;
	}
}

/* A burst's memory is given back when it is over, but for the lowest slots and those that share 64
 * with one in use; and what comes again is zeroed. */
static void a_burst_is_given_back(void **state)
{
	static const uint32_t stays[] = { 3000, 8191 };
	uint32_t i;

	for (i = 0; i < MAX; i++)
		memset(&taken[take()]->cmd, 0x5a, sizeof(union nvme_sqe));
	assert_int_equal(resident(), MAX);
	assert_int_equal(trim_all(), 0);
	for (i = 0; i < MAX; i++)
		if (i != stays[0] && i != stays[1])
			give(i);
	assert_int_equal(trim_all(), MAX - KEPT - 2 * GROUP);
	assert_in_range(resident(), KEPT + 2 * GROUP, KEPT + 3 * GROUP);
	assert_int_equal(trim_all(), 0);
	give(stays[0]);
	give(stays[1]);
	assert_int_equal(trim_all(), 2 * GROUP);
	for (i = 0; i < MAX; i++) {
		assert_int_equal(take(), i);
		if (i >= KEPT)
			assert_true(!taken[i]->cmd.common.opcode && !taken[i]->state);
	}
}

/* Also what is freed where the one that gives memory back has been, and is not through. */
static void what_is_freed_behind_is_given_back(void **state)
{
	const uint32_t late = KEPT + GROUP;

	for (uint32_t i = 0; i < MAX; i++)
		take();
	for (uint32_t i = 0; i < MAX; i++)
		if (i != late)
			give(i);
	assert_false(weft_req_slots_trim(&slots));
	give(late);
	trim_all();
	assert_in_range(resident(), 0, KEPT);
}

/* What is used again in time stays; and a usual load has nothing to give back. */
static void what_is_used_stays(void **state)
{
	for (uint32_t i = 0; i < KEPT + GROUP; i++)
		take();
	for (uint32_t i = 0; i < KEPT; i++)
		assert_false(weft_req_slots_free(&slots, taken[i]));
	for (uint32_t i = KEPT; i < KEPT + GROUP; i++)
		assert_int_equal(weft_req_slots_free(&slots, taken[i]), i == KEPT + GROUP - 1);
	for (uint32_t i = 0; i <= KEPT; i++)
		take();
	assert_int_equal(trim_all(), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_lowest_that_came_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_are_wanted_than_there_were, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_a_model_says, set_up, tear_down),
		cmocka_unit_test_setup_teardown(new_ones_are_zeroed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_burst_is_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_freed_behind_is_given_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_used_stays, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
