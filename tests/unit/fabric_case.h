/* fabric_case.h - two ends of a fabric that is each case's own. */
#ifndef WEFT_TESTS_FABRIC_CASE_H
#define WEFT_TESTS_FABRIC_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/manual_end.h"

#include "running.h"
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

extern const struct rdma_verbs *const v;
extern struct fabric_end a, b; /* @a connects, @b accepts */

/* What a case does wrong on purpose: how often, and what the fabric says of it. */
extern unsigned misuses;
extern char misuse[200];
void on_misuse(const char *what);

int set_up(void **state);
int tear_down(void **state);

bool readable(int fd);
enum ibv_qp_state state_of(const struct fabric_end *end);

#endif
