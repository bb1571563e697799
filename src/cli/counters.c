/* counters.c - the counters of queues (weft_queue_stats), added up and printed. */
#include "cli/print.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define AT(field) offsetof(struct weft_queue_stats, field)

static const struct {
	const char *name;
	size_t offset;
	bool rdma; /* and over TCP nothing */
} counters[] = {
	{ "posted", AT(posted), false },
	{ "completed", AT(completed), false },
	{ "copied_bytes", AT(copied_bytes), false },
	{ "flushed", AT(flushed), true },
	{ "retried", AT(retried), true },
	{ "rnr", AT(rnr), true },
	{ "key_hits", AT(key_hits), true },
	{ "registrations", AT(registrations), true },
};

#define NCOUNTERS (sizeof(counters) / sizeof(counters[0]))

static_assert(NCOUNTERS * sizeof(uint64_t) == sizeof(struct weft_queue_stats), "all of them");

static uint64_t value_of(const struct weft_queue_stats *stats, size_t i)
{
	return *(const uint64_t *)((const char *)stats + counters[i].offset);
}

void weft_counters_add_queue(const struct weft_queue *queue, struct weft_queue_stats *sum)
{
	struct weft_queue_stats stats;

	weft_queue_stats(queue, &stats);
	for (size_t i = 0; i < NCOUNTERS; i++)
		*(uint64_t *)((char *)sum + counters[i].offset) += value_of(&stats, i);
}

bool weft_counters_rdma(struct weft_ctrl *ctrl)
{
	static const char scheme[] = "nvme+rdma://";
	struct weft_path_info paths[WEFT_PATHS_MAX];
	unsigned count = weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX);

	for (unsigned i = 0; i < count && i < WEFT_PATHS_MAX; i++)
		if (!strncmp(paths[i].address, scheme, strlen(scheme)))
			return true;
	return false;
}

json_t *weft_counters_json(const struct weft_queue_stats *stats, bool rdma)
{
	json_t *object = json_object();

	for (size_t i = 0; i < NCOUNTERS; i++)
		if (rdma || !counters[i].rdma)
			json_object_set_new(object, counters[i].name,
					    json_integer((json_int_t)value_of(stats, i)));
	return object;
}
