/* handover_paths.h - the part of a handover that is about paths; see handover.h. */
#ifndef WEFT_TARGET_HANDOVER_PATHS_H
#define WEFT_TARGET_HANDOVER_PATHS_H

#include "target/handover.h"
#include "target/internal.h"

int tgt_paths_tell_subsys(struct weft_subsys_state *state, const struct weft_subsys *s);
int tgt_paths_tell_ctrl(struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);
void tgt_paths_free_subsys(struct weft_subsys_state *state);
void tgt_paths_free_ctrl(struct weft_ctrl_state *state);

int tgt_paths_take_subsys(const struct weft_subsys_state *state, struct weft_subsys *s,
			  struct weft_err *err);
int tgt_paths_take_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);

/* admin/ccr.c: what its log tells, TGT_CCR_ENTRIES_MAX at most, and an entry of it. */
unsigned tgt_ccr_list(struct tgt_ctrl *ctrl, struct weft_paths_entry *entries);
int tgt_ccr_inherit(struct tgt_ctrl *ctrl, const struct weft_paths_entry *entry);

#endif
