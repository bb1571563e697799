/* budget_target.h - the target of bench/budget: its reactors are turned by who measures.
 *
 * It has no header in common with <weft/host.h>: the two sides use the same names for their own
 * things. What cannot be done ends the program. */
#ifndef WEFT_BENCH_BUDGET_TARGET_H
#define WEFT_BENCH_BUDGET_TARGET_H

#include <stdint.h>

#define BUDGET_NQN "nqn.2026-11.io.weft:budget"

void budget_target_create(void);
/* nvme+tcp://127.0.0.1:PORT */
const char *budget_target_address(void);
/* Before the first turn. */
void budget_target_ns_add(uint32_t nsid, const char *spec);

/* What it has to do, until it rests. Only the reactor that has the queues turns. */
void budget_target_turn(void);
/* One turn of each reactor, the control reactor as well: while hosts connect and leave. */
void budget_target_step(void);

#endif
