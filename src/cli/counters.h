/* counters.h - what queues count (weft_queue_stats), of several together. */
#ifndef WEFT_CLI_COUNTERS_H
#define WEFT_CLI_COUNTERS_H

#include <jansson.h>
#include <weft/host.h>

void weft_counters_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);
/* What @queue has counted, on top of @sum. */
void weft_counters_add_queue(const struct weft_queue *queue, struct weft_queue_stats *sum);
/* Whether one of its paths is RDMA's: others leave most counters at 0. */
bool weft_counters_rdma(struct weft_ctrl *ctrl);
/* Without @rdma, only what also TCP counts. */
json_t *weft_counters_json(const struct weft_queue_stats *stats, bool rdma);

#endif
