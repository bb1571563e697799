/* test_host_ratelimit.c - how often a peer can make the host do something: a bunch at once, a storm
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/ratelimit.h"
#include "running.h"

#define MS    UINT64_C(1000000)
#define BEGIN (1000 * MS)

static void spending(void **state)
{
	static const struct {
		const char *what;
		unsigned spent;
		uint64_t at_us; /* after that */
		uint32_t wait_ms;
	} cases[] = {
		{ "the first of all", 0, 0, 0 },
		{ "the last of a bunch", HOST_RATELIMIT_BURST - 1, 0, 0 },
		{ "one too many", HOST_RATELIMIT_BURST, 0, HOST_RATELIMIT_INTERVAL_MS },
		{ "half of the time later", HOST_RATELIMIT_BURST, 25000,
		  HOST_RATELIMIT_INTERVAL_MS - 25 },
		{ "just before the end", HOST_RATELIMIT_BURST, 49999, 1 },
		{ "at the end", HOST_RATELIMIT_BURST, 50000, 0 },
		{ "long after it", HOST_RATELIMIT_BURST, 5000000, 0 },
	};

	for_each_named(i, cases, what) {
		struct host_ratelimit ratelimit = { 0 };

		print_message("%s\n", cases[i].what);
		for (unsigned n = 0; n < cases[i].spent; n++)
			assert_int_equal(host_ratelimit_take(&ratelimit, BEGIN), 0);
		assert_int_equal(host_ratelimit_take(&ratelimit, BEGIN + cases[i].at_us * 1000),
				 cases[i].wait_ms);
	}
}

/* Who waits as long as it is told to has something to spend then; of a storm so much is let
 * through. */
static void storm(void **state)
{
	struct host_ratelimit ratelimit = { 0 };
	uint64_t now = BEGIN;
	unsigned spent = 0;

	while (now < BEGIN + 1000 * MS) {
		uint32_t wait_ms = host_ratelimit_take(&ratelimit, now);

		spent += !wait_ms;
		now += wait_ms * MS;
	}
	assert_int_equal(spent, HOST_RATELIMIT_BURST * 1000 / HOST_RATELIMIT_INTERVAL_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spending),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
