/* stress.h - a test that does anything, as a seed says.
 *
 *   PROGRAM [SEED [COUNT]]      one seed, or as many from there on */
#ifndef WEFT_TESTS_UNIT_STRESS_H
#define WEFT_TESTS_UNIT_STRESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The test's: one round, from beginning to end. */
void stress_round(void);

/* Of the round that is on, for messages. */
uint64_t stress_seed(void);
uint32_t stress_random(uint32_t sides);

#endif
