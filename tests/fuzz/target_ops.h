/* target_ops.h - what happens on the target's side, as operations of a program (peer/input.h). */
#ifndef WEFT_FUZZ_TARGET_OPS_H
#define WEFT_FUZZ_TARGET_OPS_H

#include <stdint.h>

void op_clock(void);
void op_ns(void);
void op_subsys(void);
void op_slow(void);
void op_starve(void);
void op_feed(void);
void op_look(void);
void op_stop(void);
void op_takeover(void);

/* Both reactors take turns, or one of them. */
void turn_some(uint8_t how);
/* Storage answers and everybody takes turns, until there is no more to say. */
void run_dry(void);

#endif
