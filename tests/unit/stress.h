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

/* The test's: one storm, from beginning to end. */
void storm(void);

/* Of the storm that is on, for messages. */
uint64_t storm_seed(void);
uint32_t dice(uint32_t sides);

#endif
