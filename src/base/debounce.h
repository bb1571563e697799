/* debounce.h - debounce stop signals: two that come within a second count as one.
 *
 * timeout(1) sends its signal to its child and to the child's process group; the end of a terminal
 * brings SIGHUP and then SIGTERM. A second signal that means "do not wait" comes from a person,
 * later. */
#ifndef WEFT_BASE_DEBOUNCE_H
#define WEFT_BASE_DEBOUNCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WEFT_SIGNAL_DEBOUNCE_NS UINT64_C(1000000000)

/* The time of the last signal that counted; 0: none has. */
typedef _Atomic uint64_t weft_signal_debounce;

/* Whether a signal at @now_ns (CLOCK_MONOTONIC) is a bounce of the one before it. Also for signal
 * handlers. */
static inline bool weft_signal_is_bounce(weft_signal_debounce *last, uint64_t now_ns)
{
	uint64_t before = atomic_load(last);

	if (before && now_ns - before < WEFT_SIGNAL_DEBOUNCE_NS)
		return true;
	atomic_store(last, now_ns);
	return false;
}

static inline bool weft_signal_is_bounce_now(weft_signal_debounce *last)
{
	return weft_signal_is_bounce(last, weft_monotonic_ns());
}

#endif
