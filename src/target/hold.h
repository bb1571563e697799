/* hold.h - what subsystems have in common with other processes stands still, or goes on. On
 * home. */
#ifndef WEFT_TARGET_HOLD_H
#define WEFT_TARGET_HOLD_H

#include "target/internal.h"

/* What keeps the target's state from being held or, once it is, from standing still; NULL:
 * nothing. */
const char *tgt_hold_moves(struct weft_target *t);
void tgt_hold(struct weft_target *t); /* nothing moves it */
void tgt_unhold(struct weft_target *t);

#endif
