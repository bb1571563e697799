/* test_target_pair.c - two members of a cluster: what one asks of the other, while storage has
 * commands. */
#include "held_case.h"

enum { NS_HELD = 1, GROUP = 1 };

/* The write of a controller of the first member is on the storage before its host hears from the
 * second that the controller is over. */
static void reset_waits_for_the_other_members_storage(void **state)
{
	struct weft_ctrl *through = connect_at(target_other_address(), "");
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD);
	struct flight late = { .data = "late" };
	struct reset reset;
	uint8_t id[4096];

	reset_with_held(&reset, through, &lost, &late);
	for (int i = 0; i < 50; i++)
		assert_int_equal(weft_identify(through, 1, 0, id, NULL), 0);
	assert_false(atomic_load(&reset.over));
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	pthread_join(reset.thread, NULL);
	assert_true(reset.rc == 0 && reset.result == 1);
	assert_string_equal(held_bytes(), "late");
	land(&lost, &late); /* which the host sends again, by itself */
	host_close(&lost);
	weft_disconnect(through);
}

/* The one that asks is gone before the answer: the other goes on to end what it was asked to. */
static void who_asked_goes_away(void **state)
{
	struct weft_ctrl *through = connect_at(target_other_address(), "?reconnect_delay=1ms");
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD);
	struct flight late = { .data = "later" };
	struct reset reset;

	reset_with_held(&reset, through, &lost, &late);
	weft_ctrl_reset(through);
	pthread_join(reset.thread, NULL);
	assert_string_not_equal(held_bytes(), "later");
	held_hold(false);
	held_let_go();
	land(&lost, &late);
	assert_string_equal(held_bytes(), "later");
	host_close(&lost);
	weft_disconnect(through);
}

static int start_pair(void **state)
{
	alarm(110);
	target_start_pair();
	target_ns_add_on(NS_HELD, held_open(), GROUP);
	target_pair_begin();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reset_waits_for_the_other_members_storage),
		cmocka_unit_test(who_asked_goes_away),
	};

	return cmocka_run_group_tests(tests, start_pair, end_target);
}
