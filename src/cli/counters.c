#include "cli/counters.h"

#include <assert.h>
#include <stddef.h>

#define AT(field) offsetof(struct weft_queue_stats, field)

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{ "posted", AT(posted) },
	{ "completed", AT(completed) },
	{ "copied_bytes", AT(copied_bytes) },
	{ "flushed", AT(flushed) },
	{ "retried", AT(retried) },
	{ "rnr", AT(rnr) },
	{ "key_hits", AT(key_hits) },
	{ "registrations", AT(registrations) },
};

#define NCOUNTERS (sizeof(counters) / sizeof(counters[0]))

static_assert(NCOUNTERS * sizeof(uint64_t) == sizeof(struct weft_queue_stats), "all of them");

static uint64_t value_of(const struct weft_queue_stats *stats, size_t i)
{
	return *(const uint64_t *)((const char *)stats + counters[i].offset);
}

void weft_counters_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more)
{
	for (size_t i = 0; i < NCOUNTERS; i++)
		*(uint64_t *)((char *)sum + counters[i].offset) += value_of(more, i);
}

void weft_counters_of(const struct weft_queue *queue, struct weft_queue_stats *sum)
{
	struct weft_queue_stats stats;

	weft_queue_stats(queue, &stats);
	weft_counters_add(sum, &stats);
}

json_t *weft_counters_json(const struct weft_queue_stats *stats)
{
	json_t *object = json_object();

	for (size_t i = 0; i < NCOUNTERS; i++)
		json_object_set_new(object, counters[i].name,
				    json_integer((json_int_t)value_of(stats, i)));
	return object;
}
