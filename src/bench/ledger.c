/* ledger.c - the ledger: which generations a read may find in every chunk. */
#include "bench/ledger.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bench_ledger_init(struct bench_ledger *ledger, uint64_t count, bool volatile_cache)
{
	*ledger = (struct bench_ledger){ .count = count, .volatile_cache = volatile_cache };
	ledger->chunks = calloc(count, sizeof(*ledger->chunks));
	ledger->written = calloc(count, sizeof(*ledger->written));
	if (ledger->chunks && ledger->written)
		return 0;
	bench_ledger_free(ledger);
	return -ENOMEM;
}

void bench_ledger_free(struct bench_ledger *ledger)
{
	free(ledger->chunks);
	free(ledger->written);
	free(ledger->flushed);
	*ledger = (struct bench_ledger){};
}

void bench_ledger_assume(struct bench_ledger *ledger)
{
	for (uint64_t i = 0; i < ledger->count; i++) {
		ledger->chunks[i].high = BENCH_ANY_GENERATION;
		ledger->written[i] = (uint32_t)i;
	}
	ledger->nwritten = ledger->count;
}

uint32_t bench_ledger_send(struct bench_ledger *ledger, uint64_t chunk)
{
	struct bench_chunk *c = &ledger->chunks[chunk];

	if (!c->high)
		ledger->written[ledger->nwritten++] = (uint32_t)chunk;
	return ++c->high;
}

static uint64_t flushed_in(const struct bench_ledger *ledger, uint32_t epoch)
{
	return epoch < ledger->nepochs ? ledger->flushed[epoch] : 0;
}

static bool is_durable(const struct bench_ledger *ledger, const struct bench_chunk *c)
{
	return c->acked && c->seq <= flushed_in(ledger, c->epoch);
}

void bench_ledger_ack(struct bench_ledger *ledger, uint64_t chunk, uint32_t generation,
		      uint32_t epoch)
{
	struct bench_chunk *c = &ledger->chunks[chunk];

	assert(generation > c->acked && generation <= c->high);
	if (is_durable(ledger, c))
		c->durable = c->acked;
	c->acked = generation;
	c->epoch = epoch;
	c->seq = ++ledger->seq;
	c->bad = 0;
}

/* Without memory the flush does not count, which is on the safe side. */
static bool make_room(struct bench_ledger *ledger, uint32_t epoch)
{
	size_t want = (size_t)epoch + 1;
	uint64_t *grown;

	if (want <= ledger->nepochs)
		return true;
	grown = reallocarray(ledger->flushed, want, sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + ledger->nepochs, 0, (want - ledger->nepochs) * sizeof(*grown));
	ledger->flushed = grown;
	ledger->nepochs = want;
	return true;
}

void bench_ledger_flushed(struct bench_ledger *ledger, uint64_t seq, uint32_t epoch)
{
	if (make_room(ledger, epoch) && seq > ledger->flushed[epoch])
		ledger->flushed[epoch] = seq;
}

uint32_t bench_ledger_low(const struct bench_ledger *ledger, uint64_t chunk, uint32_t epoch)
{
	const struct bench_chunk *c = &ledger->chunks[chunk];

	if (!ledger->volatile_cache || c->epoch == epoch || is_durable(ledger, c))
		return c->acked;
	return c->durable;
}
