/* foreign_target.h - a target that is not ours: it keeps what it was given.
 *
 *   command ─▶ kept ─▶ carried out, usually soon ─▶ answered
 *                └ its host is gone, and it does not know ─▶ carried out whenever that is
 *                └ it knows: no keep-alive, or the connection has ended ─▶ within CQT, or never
 *
 * A host that comes back gets another controller, at once, whatever the old one has in hand. There
 * is no Cross-Controller Reset. It shares no code with Weft's target but the wire's structures. */
#ifndef SIM_STRANGER_H
#define SIM_STRANGER_H

#include <stdint.h>

struct sim_node;
struct foreign_target;

/* What it needs, besides a keep-alive time to see that there was no traffic in the last one
 * (TBKAS), to be done with its commands. 0: it drops them, at once. */
struct foreign_kind {
	unsigned cqt_ms;
};

/* Listens on @count ports of the system's choice, which @sockets gets. */
struct foreign_target *foreign_open(const struct sim_node *sim, const struct foreign_kind *kind,
				    uint16_t *sockets, unsigned count);
/* All hosts have gone. */
void foreign_close(struct foreign_target *s);
unsigned foreign_targets_busy(void); /* commands that are kept */

#endif
