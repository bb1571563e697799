/* test_req_slots.c - requests' memory: the lowest free one, each once, and all that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/transport.h"

enum { MAX = 2 * 4096 };

static struct weft_req_slots slots;
static struct weft_req *taken[MAX];

static int set_up(void **state)
{
	slots = (struct weft_req_slots){ .size = sizeof(struct weft_req) };
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_lowest_that_came_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_are_wanted_than_there_were, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_a_model_says, set_up, tear_down),
		cmocka_unit_test_setup_teardown(new_ones_are_zeroed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
