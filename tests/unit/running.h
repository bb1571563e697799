/* running.h - what a unit test was at when it failed: the case, and the row of its table.
 *
 * running.c stands between main() and cmocka in every program. It prints "# running NAME" before a
 * case, and the row behind a failure, also when a signal ends the program: an assertion of the code
 * under test, the alarm of a case that hangs, the time limit of tests/run. */
#ifndef WEFT_TESTS_RUNNING_H
#define WEFT_TESTS_RUNNING_H

#include <stdbool.h>
#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Row @row of @table is at work; @label is its text, or NULL. */
bool running_row(const char *table, size_t row, const char *label);
bool running_no_row(const char *table); /* the loop is over; returns false */

/* A loop over the rows of a table, on the test's own thread. A row is named by its number;
 * for_each_named() adds the first line of its member @name. */
#define for_each_row(i, table) \
	for (size_t i = 0;     \
	     i < COUNT(table) ? running_row(#table, i, NULL) : running_no_row(#table); i++)
#define for_each_named(i, table, name)                                                            \
	for (size_t i = 0;                                                                        \
	     i < COUNT(table) ? running_row(#table, i, (table)[i].name) : running_no_row(#table); \
	     i++)

#endif
