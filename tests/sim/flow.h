/* flow.h - bytes under way in one direction of a wire. */
#ifndef SIM_FLOW_H
#define SIM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct flow {
	struct weft_list pieces;
	uint64_t latency_ns;
};

void flow_init(struct flow *f, uint64_t latency_ns);
/* From the sender's socket; @held: it does not leave the sender's system yet. 0: the sender has
 * hung up, and what has not left is gone with it; -EAGAIN: there is nothing. */
int flow_take(struct flow *f, int fd, bool held);
/* Into the receiver's socket, what has arrived; one that is gone swallows it. True: something
 * moved. */
bool flow_give(struct flow *f, int fd);
uint64_t
flow_due(const struct flow *f); /* when the first bytes arrive; UINT64_MAX: nothing is under way */
bool flow_is_empty(const struct flow *f);
void flow_drop(struct flow *f);

#endif
