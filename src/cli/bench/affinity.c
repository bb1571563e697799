/* affinity.c - pin a job to its CPU. */
#include "cli/bench/affinity.h"

static int nth_cpu(const cpu_set_t *cpus, unsigned n)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, cpus) || n--)
		cpu++;
	return cpu;
}

void bench_affinity_set(const struct bench_config *config, unsigned index)
{
	unsigned count = (unsigned)CPU_COUNT(&config->cpus);
	cpu_set_t one;

	if (!count)
		return;
	CPU_ZERO(&one);
	CPU_SET(nth_cpu(&config->cpus, index % count), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

void bench_affinity_restore(const struct bench_config *config)
{
	if (CPU_COUNT(&config->cpus))
		sched_setaffinity(0, sizeof(config->home_cpus), &config->home_cpus);
}
