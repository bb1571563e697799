/* ledger.h - what a job knows about every block that it wrote: which generations may be there.
 *
 *           durable ≤ acked ≤ high
 *              │        │       └ sent last; above acked: its outcome is not known, or it failed
 *              │        └ completed last
 *              └ completed and flushed, as far as is known
 *
 * Rule: a read must find a generation from low to high. low is acked; but where the controller has
 * a volatile write cache and the connection was lost since, the target may have lost what was not
 * flushed, and low is durable. A flush counts for the writes completed before it was sent, if no
 * connection was lost between the write and the flush's completion. Where it is not certain, the
 * ledger believes the target: it never raises a false alarm.
 *
 * An epoch is the number of losses so far. A chunk is what one I/O covers. */
#ifndef WEFT_BENCH_LEDGER_H
#define WEFT_BENCH_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_ANY_GENERATION UINT32_MAX

struct bench_chunk {
	uint64_t seq; /* of the completion of @acked, among all of the job */
	uint32_t durable, acked, high;
	uint32_t epoch : 30; /* in which @acked was sent */
	uint32_t busy : 1;   /* in flight: nothing else may touch it */
	uint32_t bad : 1;    /* found wrong and reported; until it is written again */
};

struct bench_ledger {
	struct bench_chunk *chunks;
	uint64_t count;
	uint32_t *written; /* the chunks that a read may choose from */
	uint64_t nwritten;
	uint64_t seq;
	uint64_t *flushed; /* per epoch: the last completion that a flush in it made durable */
	size_t nepochs;
	bool volatile_cache;
};

int bench_ledger_init(struct bench_ledger *ledger, uint64_t count, bool volatile_cache);
void bench_ledger_free(struct bench_ledger *ledger);
/* Nothing is known about what an earlier run left: any generation will do. */
void bench_ledger_assume(struct bench_ledger *ledger);

/* Returns the generation to write. */
uint32_t bench_ledger_send(struct bench_ledger *ledger, uint64_t chunk);
/* @epoch: the one in which it was sent. */
void bench_ledger_ack(struct bench_ledger *ledger, uint64_t chunk, uint32_t generation,
		      uint32_t epoch);
/* A flush that was sent when @seq was the ledger's, and stayed within @epoch, has completed. */
void bench_ledger_flushed(struct bench_ledger *ledger, uint64_t seq, uint32_t epoch);
/* The oldest generation that may be there; 0: also what was there before the run. */
uint32_t bench_ledger_low(const struct bench_ledger *ledger, uint64_t chunk, uint32_t epoch);

#endif
