/* spin.h - how long to spin before sleeping. */
#ifndef WEFT_REACTOR_SPIN_H
#define WEFT_REACTOR_SPIN_H

#include <stdint.h>

#define WEFT_SPIN_MAX_NS   UINT64_C(50000)
#define WEFT_SPIN_SKIP_MAX 256

struct weft_spin {
	uint64_t gap_ns; /* running mean of the gaps that a spin has bridged */
	unsigned skip;   /* sleep through this many waits before the next try */
	unsigned miss;   /* what the next failure sets skip to */
};

void weft_spin_init(struct weft_spin *spin);

/* Asked before every wait: 0 means sleep at once. */
uint64_t weft_spin_budget_ns(struct weft_spin *spin);
/* The spin ended with work, after @gap_ns. */
void weft_spin_hit(struct weft_spin *spin, uint64_t gap_ns);
/* The spin was for nothing. */
void weft_spin_miss(struct weft_spin *spin);

#endif
