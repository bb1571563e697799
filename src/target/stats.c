/* stats.c - counters: commands, bytes and errors, by queue, by subsystem and reactor, by namespace. */
#include "target/internal.h"

static void counter_add(_Atomic uint64_t *counter, uint64_t by)
{
	/* There is one writer: no read-modify-write instruction is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
			      memory_order_relaxed);
}

void tgt_stats_count(struct weft_req *req, bool write, uint64_t bytes)
{
	struct tgt_queue *queue = tgt_queue(req);
	struct tgt_stats *both[] = { &queue->stats,
				     &queue->ctrl->subsys->stats[req->qp->group->index] };

	for (int i = 0; i < 2; i++) {
		counter_add(write ? &both[i]->writes : &both[i]->reads, 1);
		counter_add(write ? &both[i]->write_bytes : &both[i]->read_bytes, bytes);
	}
}

void tgt_stats_error(struct weft_req *req, bool reading, bool media)
{
	unsigned group = req->qp->group->index;
	struct tgt_ns *ns = tgt_ns_at_work(req);

	counter_add(reading ? &ns->local[group].read_errors : &ns->local[group].write_errors, 1);
	counter_add(&ns->subsys->stats[group].media_errors, media);
}

void tgt_stats_add(struct tgt_stats *stats, struct tgt_totals *sum)
{
	sum->reads += atomic_load_explicit(&stats->reads, memory_order_relaxed);
	sum->writes += atomic_load_explicit(&stats->writes, memory_order_relaxed);
	sum->read_bytes += atomic_load_explicit(&stats->read_bytes, memory_order_relaxed);
	sum->write_bytes += atomic_load_explicit(&stats->write_bytes, memory_order_relaxed);
	sum->media_errors += atomic_load_explicit(&stats->media_errors, memory_order_relaxed);
}
