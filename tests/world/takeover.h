/* takeover.h - the streams of a target whose place another one takes, in the same process.
 *
 *   host ══ socket pair ══ old target            host ══ new pair ══ new target
 *                                       ─▶       what was on its way in the old pair goes first
 *
 * Two processes would share a socket; here the old target closes its end, which must not end the
 * stream. The host's descriptor keeps its number. */
#ifndef WEFT_TESTS_WORLD_TAKEOVER_H
#define WEFT_TESTS_WORLD_TAKEOVER_H

#include "target/takeover/takeover.h"

/* The two ends of a connection; until the host closes its own. */
void takeover_connected(int host, int target);
void takeover_closed(int host);
/* Gives every connection in @state a socket of its own. */
void takeover_move(struct weft_target_state *state);

#endif
