/* broken.c - cases that fail, on purpose: tests/func/failures.py looks at what is told of them. It
 * is no test itself, so tests/run does not find it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "running.h"

static const struct {
	const char *name;
	int value;
} table[] = { { "good", 1 }, { "bad", 2 }, { "not reached", 1 } };

static const int inner[] = { 7, 8 };

static void a_row_fails(void **state)
{
	for_each_named(i, table, name)
		assert_int_equal(table[i].value, 1);
}

static void a_row_of_a_row_fails(void **state)
{
	for_each_named(i, table, name)
		for_each_row(j, inner)
			assert_true(table[i].value == 1 || inner[j] == 7);
}

static void behind_a_table(void **state)
{
	for_each_row(i, inner)
		assert_true(inner[i]);
	fail();
}

static void a_row_left_by_break(void **state)
{
	for_each_row(i, inner)
		break;
}

static void a_row_ends_the_program(void **state)
{
	for_each_named(i, table, name)
		if (table[i].value == 2)
			abort();
}

static void a_row_hangs(void **state)
{
	for_each_named(i, table, name)
		while (table[i].value == 2)
			pause();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest failing[] = {
		cmocka_unit_test(a_row_fails),
		cmocka_unit_test(a_row_of_a_row_fails),
		cmocka_unit_test(behind_a_table),
		cmocka_unit_test(a_row_left_by_break),
	};
	const struct CMUnitTest ending[] = {
		cmocka_unit_test(a_row_left_by_break),
		cmocka_unit_test(a_row_ends_the_program),
	};
	const struct CMUnitTest hanging[] = { cmocka_unit_test(a_row_hangs) };

	if (argc > 1 && !strcmp(argv[1], "abort"))
		return cmocka_run_group_tests(ending, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "hang"))
		return cmocka_run_group_tests(hanging, NULL, NULL);
	return cmocka_run_group_tests(failing, NULL, NULL);
}
