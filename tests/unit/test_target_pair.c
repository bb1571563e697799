/* test_target_pair.c - two members of a cluster: what one asks of the other, while storage has
 * commands. */
#include "held_case.h"
#include "running.h"

enum { NS_HELD = 1, GROUP = 1 };

/* The write of a controller of the first member is on the storage before its host hears from the
 * second that the controller is over. */
static void reset_waits_for_the_other_members_storage(void **state)
{
	struct weft_ctrl *through = connect_at(target_other_address(), "");
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD);
	struct inflight_io late = { .data = "late" };
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
	inflight_wait(&lost, &late); /* which the host sends again, by itself */
	host_close(&lost);
	weft_disconnect(through);
}

/* The one that asks is gone before the answer: the other goes on to end what it was asked to. */
static void who_asked_goes_away(void **state)
{
	struct weft_ctrl *through = connect_at(target_other_address(), "?reconnect_delay=1ms");
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD);
	struct inflight_io late = { .data = "later" };
	struct reset reset;

	reset_with_held(&reset, through, &lost, &late);
	weft_ctrl_reset(through);
	pthread_join(reset.thread, NULL);
	assert_string_not_equal(held_bytes(), "later");
	held_hold(false);
	held_let_go();
	inflight_wait(&lost, &late);
	assert_string_equal(held_bytes(), "later");
	host_close(&lost);
	weft_disconnect(through);
}

/* --- standing still --------------------------------------------------------------------------- */

/* What is asked of a member that stands still waits: another process may be the member by now. */
static void frozen_member_writes_nothing(void **state)
{
	assert_int_equal(target_freeze(60000), 0);
	target_move_start(GROUP + 1);
	for (int i = 0; i < 20; i++)
		assert_true(target_state_is_still());
	target_thaw();
	target_move_wait();
}

/* --- storage ---------------------------------------------------------------------------------- */

static bool reaches_others; /* of the store: members may be on other machines */

bool __wrap_weft_store_on_shared_fs(const void *store);
bool __wrap_weft_store_on_shared_fs(const void *store)
{
	return reaches_others;
}

/* Where members may be on other machines, locks that only this one sees keep nobody out. */
static void storage_by_where_its_locks_show(void **state)
{
	static const struct {
		bool here, reaches;
		int rc;
	} cases[] = {
		{ false, false, 0 },
		{ true, false, 0 },
		{ false, true, 0 },
		{ true, true, -EOPNOTSUPP },
	};

	for_each_row(i, cases) {
		struct weft_backend *be = cases[i].here ? held_open_here() : held_open();
		int rc;

		reaches_others = cases[i].reaches;
		rc = target_ns_try_on(NS_HELD + 1, be, GROUP);
		reaches_others = false;
		assert_int_equal(rc, cases[i].rc);
		if (rc < 0)
			held_drop(be);
		else
			target_ns_remove(NS_HELD + 1);
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

enum { LID_ANA = 0x0c, OPTIMIZED = 1, PERSISTENT_LOSS = 4, CHANGE = 15 };

static unsigned state_of_group(struct weft_ctrl *ctrl)
{
	uint8_t page[16 + 40];
	uint32_t group;

	assert_int_equal(weft_log_page(ctrl, LID_ANA, 0, 0, page, sizeof(page), NULL), 0);
	memcpy(&group, page + 16, sizeof(group));
	assert_int_equal(group, GROUP);
	return page[16 + 16];
}

/* A group that another member has without having been given it was served twice: locks are not
 * shared, or ours was lost. The member is none from then on, and its hosts are told that nothing
 * comes back here. */
static void group_that_was_taken(void **state)
{
	struct weft_ctrl *ctrl = connect_at(target_address(), "");
	unsigned shown;

	assert_int_equal(state_of_group(ctrl), OPTIMIZED);
	target_pair_take(GROUP);
	do
		shown = state_of_group(ctrl);
	while (shown == OPTIMIZED || shown == CHANGE);
	assert_int_equal(shown, PERSISTENT_LOSS);
	weft_disconnect(ctrl);
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
		cmocka_unit_test(frozen_member_writes_nothing),
		cmocka_unit_test(storage_by_where_its_locks_show),
		cmocka_unit_test(group_that_was_taken), /* the last: nothing is served any more */
	};

	return cmocka_run_group_tests(tests, start_pair, end_target);
}
