/* run_log.h - a log of what ran, a letter each, in the order in which it did. */
#ifndef WEFT_TESTS_UNIT_RUN_LOG_H
#define WEFT_TESTS_UNIT_RUN_LOG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static char ran[512];

static inline void note(char what)
{
	size_t n = strlen(ran);

	assert_true(n + 1 < sizeof(ran));
	ran[n] = what;
	ran[n + 1] = '\0';
}

static inline void expect_ran(const char *what)
{
	assert_string_equal(ran, what);
	ran[0] = '\0';
}

#endif
