/* running.c - what a unit test was at when it failed.
 *
 *   main ─▶ _cmocka_run_group_tests ═▶ each case: begin ─▶ its set-up ─▶ the case ─▶ its teardown ─▶ end
 *           (wrapped by the linker)
 *
 * Invariant: there is a row while a loop over a table runs, or after it has failed or was left by
 * break or return. */
#include "running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct CMUnitTest *next; /* the case that begins now, as main() has it */
static const struct CMUnitTest *now;

/* Of nested loops, the outer one first. */
static struct row {
	const char *table;
	char text[128];
} rows[4];
static unsigned depth;

static void leave(const char *table)
{
	for (unsigned i = 0; i < depth; i++)
		if (!strcmp(rows[i].table, table))
			depth = i; /* and those inside it, which may have been left by break */
}

bool running_row(const char *table, size_t number, const char *label)
{
	int line = label ? (int)strcspn(label, "\n") : 0;
	struct row *row;

	leave(table);
	if (depth == sizeof(rows) / sizeof(*rows))
		depth--;
	row = &rows[depth++];
	row->table = table;
	snprintf(row->text, sizeof(row->text), "%s[%zu]%s%.*s", table, number, label ? ": " : "",
		 line, label ? label : "");
	return true;
}

bool running_no_row(const char *table)
{
	leave(table);
	return false;
}

static int begin(void **state)
{
	now = next++;
	depth = 0;
	printf("# running %s\n", now->name);
	return now->setup_func ? now->setup_func(state) : 0;
}

/* A loop that was left by break has a row, too: tests/run shows what is printed here if the case has
 * failed. */
static int end(void **state)
{
	for (unsigned i = 0; i < depth; i++)
		printf("# in the row %s\n", rows[i].text);
	return now->teardown_func ? now->teardown_func(state) : 0;
}

static void put(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return; /* nobody is left to tell */
}

/* The program is about to end in the middle of a case. */
static void on_end(int number)
{
	for (unsigned i = 0; i < depth; i++) {
		put("# in the row ");
		put(rows[i].text);
		put("\n");
	}
	signal(number, SIG_DFL);
	raise(number);
}

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown);

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown)
{
	struct CMUnitTest *named = calloc(n, sizeof(*named));
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed is seen, however it ends */
	signal(SIGABRT, on_end);
	signal(SIGALRM, on_end);
	signal(SIGTERM, on_end);
	for (size_t i = 0; i < n; i++) {
		named[i] = tests[i];
		named[i].setup_func = begin;
		named[i].teardown_func = end;
	}
	next = tests;
	rc = __real__cmocka_run_group_tests(name, named, n, setup, teardown);
	free(named);
	return rc;
}
