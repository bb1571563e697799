/* freeze_store.h - what subsystems have in common with other processes stands still, or goes on. On
 * the control reactor. */
#ifndef WEFT_TARGET_TAKEOVER_FREEZE_STORE_H
#define WEFT_TARGET_TAKEOVER_FREEZE_STORE_H

#include "target/internal.h"

/* What keeps the target's state from being held or, once it is, from standing still; NULL:
 * nothing. */
const char *tgt_store_busy_reason(struct weft_target *t);
void tgt_freeze_store(struct weft_target *t); /* nothing moves it */
void tgt_thaw_store(struct weft_target *t);

#endif
