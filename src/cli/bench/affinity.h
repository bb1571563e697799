/* affinity.h - pin a job to its CPU.
 *
 * Memory is allocated on the node of the CPU that touches it first, so queues and buffers are made
 * by a thread that is already there. */
#ifndef WEFT_CLI_BENCH_AFFINITY_H
#define WEFT_CLI_BENCH_AFFINITY_H

#include "cli/bench/config.h"

/* The calling thread goes to where job @index belongs; without --cpus it stays. */
void bench_affinity_set(const struct bench_config *config, unsigned index);
/* … and from there to wherever it may be, as @config has kept it. */
void bench_affinity_restore(const struct bench_config *config);

#endif
