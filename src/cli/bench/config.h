/* config.h - the options of a run, parsed. */
#ifndef WEFT_CLI_BENCH_CONFIG_H
#define WEFT_CLI_BENCH_CONFIG_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/host.h>

#include "base/err.h"

struct bench_config {
	const char *uri;
	uint32_t nsid;               /* of --ns; 0: not given */
	struct weft_options connect; /* what the options say; the URI's words are not in it */
	bool hdgst, ddgst;           /* from options and URI together */
	const char *rw;              /* the word of --rw */
	bool random;                 /* offsets; otherwise one after the other */
	unsigned read_pct;           /* of 100 I/Os, the rest are writes */
	uint64_t bs;
	unsigned depth;      /* of a job, over all its queues */
	unsigned jobs;       /* threads */
	unsigned queues;     /* of a job */
	cpu_set_t cpus;      /* a job on each, in turn; none: anywhere */
	cpu_set_t home_cpus; /* of the other threads, where jobs have theirs */
	uint64_t time_ns, warmup_ns, interval_ns;
	uint64_t rate; /* I/Os per second, of all jobs together; 0: as fast as it goes */
	uint64_t offset, size;
	uint64_t seed;
	bool seed_given;
	unsigned flush_every; /* writes of a job; 0: never */
	bool flush_given;
	bool verify;
	bool strict; /* what was acknowledged has to be there, flushed or not */
	bool write_ok;
	bool json;
	const char *plot;
	bool help;
};

static inline bool bench_writes(const struct bench_config *config)
{
	return config->read_pct < 100;
}

/* EXIT_OK, or EXIT_USAGE after the error was printed. */
int bench_args(int argc, char **argv, struct bench_config *config);
void bench_usage(void);

#endif
