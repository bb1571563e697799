/* io_job.h - many commands at once, and a model of what the namespace holds.
 *
 *   job: a thread and its queue ─▶ ranges: each owns a range, one command at a time in flight
 *   done() ─▶ check against the model ─▶ the range's next command, from inside done()
 *
 * Ranges do not overlap, so that every answer is known. Memory is in odd pieces with a byte between
 * them that nobody may touch. A broken promise ends the program. */
#ifndef WEFT_TESTS_UNIT_IO_JOB_H
#define WEFT_TESTS_UNIT_IO_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "host_case.h"

enum {
	BLOCK = 512,
	RANGE_BYTES = 96 << 10,
	WIDE_BYTES = 3 << 20, /* of a job's first range: its commands are split */
	RANGES = 24,
	COMMANDS = 30, /* of each range, at least */
	PARTS = 12,
};

struct io_range {
	struct weft_cmd cmd;
	struct io_job *job;
	uint64_t base, size;
	uint8_t *model, *memory; /* what the range holds; @size + PARTS bytes */
	struct iovec iov[PARTS];
	unsigned left, seed;
	bool out, differs; /* in flight; a compare that must fail */
};

struct io_job {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
	struct io_range ranges[RANGES];
	unsigned busy; /* ranges with work left */
	bool by_fd;    /* driven through weft_queue_fd() */
	pthread_t thread;
};

extern atomic_bool io_job_more; /* ranges go on, whatever they have done */

/* Opens its queue and clears its ranges, which are those of @index. */
void io_job_init(struct io_job *job, struct weft_ctrl *ctrl, struct weft_ns *ns, unsigned index);
/* A thread's work: until every range has done its commands, and crew_more is false. */
void *io_job_run(void *job);
void io_job_end(struct io_job *job);

#endif
