/* io_job.h - many commands at once, and a model of what the namespace holds.
 *
 *   crew: a thread and its queue ─▶ lanes: each owns a range, one command at a time in flight
 *   done() ─▶ check against the model ─▶ the lane's next command, from inside done()
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
	LANE_BYTES = 96 << 10,
	WIDE_BYTES = 3 << 20, /* of a crew's first lane: its commands are split */
	LANES = 24,
	COMMANDS = 30, /* of each lane, at least */
	PARTS = 12,
};

struct lane {
	struct weft_cmd cmd;
	struct crew *crew;
	uint64_t base, size;
	uint8_t *model, *memory; /* what the range holds; @size + PARTS bytes */
	struct iovec iov[PARTS];
	unsigned left, seed;
	bool out, differs; /* in flight; a compare that must fail */
};

struct crew {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
	struct lane lanes[LANES];
	unsigned busy; /* lanes with work left */
	bool by_fd;    /* driven through weft_queue_fd() */
	pthread_t thread;
};

extern atomic_bool crew_more; /* lanes go on, whatever they have done */

/* Opens its queue and clears its ranges, which are those of @index. */
void crew_init(struct crew *crew, struct weft_ctrl *ctrl, struct weft_ns *ns, unsigned index);
/* A thread's work: until every lane has done its commands, and crew_more is false. */
void *crew_run(void *crew);
void crew_end(struct crew *crew);

#endif
