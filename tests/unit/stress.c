/* stress.c - seeds, random numbers, one round after the other. */
#include "stress.h"

#include <stdlib.h>

enum { SEEDS = 40 };

static uint64_t seed, dice_state, first = 1, count = SEEDS;

uint64_t stress_seed(void)
{
	return seed;
}

uint32_t stress_random(uint32_t sides)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (uint32_t)(dice_state >> 11) % sides;
}

static void stress_rounds(void **state)
{
	for (seed = first; seed < first + count; seed++) {
		print_message("# seed %llu\n", (unsigned long long)seed);
		dice_state = seed * 0x9e3779b97f4a7c15 + 1;
		stress_round();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stress_rounds) };

	if (argc > 1) {
		first = strtoull(argv[1], NULL, 0);
		count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
