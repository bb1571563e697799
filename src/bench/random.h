/* random.h - splitmix64: numbers that a seed repeats, one state per job. Not for secrets. */
#ifndef WEFT_BENCH_RANDOM_H
#define WEFT_BENCH_RANDOM_H

#include <stdint.h>

#define BENCH_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Spreads every bit of @x over all of the result; a bijection. */
static inline uint64_t bench_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline uint64_t bench_random(uint64_t *state)
{
	return bench_mix(*state += BENCH_GOLDEN);
}

/* From 0 to @below - 1. */
static inline uint64_t bench_random_below(uint64_t *state, uint64_t below)
{
	return (uint64_t)(((unsigned __int128)bench_random(state) * below) >> 64);
}

#endif
