/* counters.h - what queues count (weft_queue_stats), of several together. */
#ifndef WEFT_CLI_COUNTERS_H
#define WEFT_CLI_COUNTERS_H

#include <jansson.h>
#include <weft/host.h>

void weft_counters_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);
/* What @queue has counted, on top of @sum. */
void weft_counters_of(const struct weft_queue *queue, struct weft_queue_stats *sum);
json_t *weft_counters_json(const struct weft_queue_stats *stats);

#endif
