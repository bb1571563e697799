/* pump.h - keep requests in flight over one or many connections, and count the replies.
 *
 *   ring: | request | request | … |  ──send──▶  connection  ──recv──▶  counted, never kept
 *
 * Requests have one length and replies have one length, and replies come in the order of the
 * requests: so all that is ever looked at is the first byte of a reply. One thread, which never
 * sleeps. A connection sends the next requests when a batch of its depth has been answered: fewer
 * at a time would cost both ends more system calls for the same bytes. */
#ifndef WEFT_BENCH_PUMP_H
#define WEFT_BENCH_PUMP_H

#include <stdint.h>

#include "base/hist.h"

struct pump_conn {
	int fd;              /* does not block */
	uint32_t depth;      /* requests in flight */
	uint32_t batch;      /* so many answers let the next ones go */
	const uint8_t *ring; /* whole requests, sent round and round */
	uint64_t ring_bytes;
	uint64_t sent, unsent;  /* bytes of requests: gone, and allowed to go */
	uint64_t arrived;       /* bytes of the reply that is under way */
	uint64_t started, done; /* requests */
	uint64_t *since_ns;     /* of each in flight, by its number modulo depth */
};

struct pump {
	uint32_t request, reply; /* bytes of each */
	uint8_t reply_type;      /* its first byte */
	uint32_t count;
	struct pump_conn *conns;
	int epoll_fd;
	uint64_t done;
	struct weft_hist latency;
};

/* @depth of all together is spread over @count connections; a connection's batch is one @part-th of
 * its part. The caller sets each connection's fd and ring. */
void pump_init(struct pump *pump, uint32_t count, uint32_t depth, uint32_t part);
/* For that long, after a warm-up that does not count; then prints what came of it, as JSON. */
void pump_run(struct pump *pump, double warmup_s, double seconds);

_Noreturn void pump_die(const char *what);

#endif
