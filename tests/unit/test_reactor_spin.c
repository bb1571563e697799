/* test_reactor_spin.c - when a reactor spins, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reactor/spin.h"

static void spins_stop_at_the_first_failure(void **state)
{
	struct weft_spin idle;

	weft_spin_init(&idle);
	assert_int_equal(weft_spin_budget_ns(&idle), WEFT_SPIN_MAX_NS);
	weft_spin_miss(&idle);
	assert_int_equal(weft_spin_budget_ns(&idle), 0);
}

/* How many of @waits are spun through when every spin fails. */
static unsigned tries(unsigned waits)
{
	struct weft_spin idle;
	unsigned n = 0;

	weft_spin_init(&idle);
	for (unsigned i = 0; i < waits; i++) {
		if (!weft_spin_budget_ns(&idle))
			continue;
		weft_spin_miss(&idle);
		n++;
	}
	return n;
}

static void failing_spins_become_rare(void **state)
{
	assert_true(tries(100) < 10);
	assert_in_range(tries(100000), 100000 / (WEFT_SPIN_SKIP_MAX + 1),
			100000 / WEFT_SPIN_SKIP_MAX + 10);
}

static void spins_follow_the_gap(void **state)
{
	struct weft_spin idle;

	weft_spin_init(&idle);
	for (int i = 0; i < 100; i++)
		weft_spin_hit(&idle, 4000);
	assert_in_range(weft_spin_budget_ns(&idle), 7900, 8100);
	for (int i = 0; i < 100; i++)
		weft_spin_hit(&idle, 40000);
	assert_int_equal(weft_spin_budget_ns(&idle), WEFT_SPIN_MAX_NS);
}

static void spins_resume_after_one_success(void **state)
{
	struct weft_spin idle;
	unsigned waits = 0;

	weft_spin_init(&idle);
	for (int i = 0; i < 20; i++) {
		while (!weft_spin_budget_ns(&idle))
			continue;
		weft_spin_miss(&idle);
	}
	while (!weft_spin_budget_ns(&idle))
		waits++;
	assert_int_equal(waits, WEFT_SPIN_SKIP_MAX);
	weft_spin_hit(&idle, 3000);
	assert_true(weft_spin_budget_ns(&idle) > 0);
	weft_spin_miss(&idle);
	assert_int_equal(weft_spin_budget_ns(&idle), 0);
	assert_true(weft_spin_budget_ns(&idle) > 0); /* one failure costs one wait again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spins_stop_at_the_first_failure),
		cmocka_unit_test(failing_spins_become_rare),
		cmocka_unit_test(spins_follow_the_gap),
		cmocka_unit_test(spins_resume_after_one_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
