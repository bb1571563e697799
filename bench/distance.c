/* distance.c - how far apart two CPUs are: what it takes to pass a cache line there and back.
 *
 *   one thread on each: mine ─▶ yours ─▶ mine …
 *
 * A hypervisor may move virtual CPUs to other cores while a program runs on them. Where they no
 * longer share a cache, everything that goes from one to the other takes several times as long.
 *
 * usage: distance CPU CPU          prints nanoseconds */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIPS = 2000, TRIES = 5 };

static _Atomic uint32_t shared_word; /* even: ours, odd: theirs */

static void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0) {
		perror("distance: sched_setaffinity");
		exit(1);
	}
}

static void *pong_thread(void *cpu)
{
	pin_to_cpu(*(int *)cpu);
	for (uint32_t i = 1; i < 2 * TRIPS * TRIES; i += 2) {
		while (atomic_load_explicit(&shared_word, memory_order_acquire) != i)
			;
		atomic_store_explicit(&shared_word, i + 1, memory_order_release);
	}
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t measure_round_trip(uint32_t *at)
{
	uint64_t since = now_ns();

	for (int i = 0; i < TRIPS; i++) {
		atomic_store_explicit(&shared_word, *at + 1, memory_order_release);
		*at += 2;
		while (atomic_load_explicit(&shared_word, memory_order_acquire) != *at)
			;
	}
	return (now_ns() - since) / TRIPS;
}

int main(int argc, char **argv)
{
	uint64_t least = UINT64_MAX, ns;
	uint32_t at = 0;
	pthread_t other;
	int cpu;

	if (argc != 3) {
		fputs("usage: distance CPU CPU\n", stderr);
		return 2;
	}
	pin_to_cpu(atoi(argv[1]));
	cpu = atoi(argv[2]);
	if (pthread_create(&other, NULL, pong_thread, &cpu) != 0)
		return 1;
	for (int i = 0; i < TRIES; i++) {
		ns = measure_round_trip(&at);
		least = ns < least ? ns : least;
	}
	pthread_join(other, NULL);
	printf("%llu\n", (unsigned long long)least);
	return 0;
}
