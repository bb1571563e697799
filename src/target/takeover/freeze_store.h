/* freeze_store.h - freeze and thaw the stores that subsystems share with other processes. On the
 * control reactor. */
#ifndef WEFT_TARGET_TAKEOVER_FREEZE_STORE_H
#define WEFT_TARGET_TAKEOVER_FREEZE_STORE_H

#include "target/internal.h"

/* Why the target's stores cannot be frozen yet or, once they are, why they are not idle; NULL: they
 * can be, or are. */
const char *tgt_store_busy_reason(struct weft_target *t);
void tgt_freeze_store(struct weft_target *t); /* nothing changes them any more */
void tgt_thaw_store(struct weft_target *t);

#endif
