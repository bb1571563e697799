/* budget_world.h - both ends in one thread: connections that are socket pairs, waits that are turns of the
 * others, a clock that can stand still. */
#ifndef WEFT_BENCH_BUDGET_WORLD_H
#define WEFT_BENCH_BUDGET_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one that everything is in; others are left alone. */
extern pthread_t budget_world_thread;
/* How the target, wherever it is, has a turn of each of its reactors. */
extern void (*budget_world_target)(void);

/* There will be so many connections, and when these are all made, perhaps more. A target that is another
 * process has the other ends because it was forked after this. */
void budget_world_pairs(unsigned count);

/* Bytes that one end takes while the other receives nothing. */
size_t budget_world_room(void);

void budget_clock_hold(void);
void budget_clock_step(uint64_t ns);
void budget_clock_release(void);

#endif
