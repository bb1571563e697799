/* parts.h - the parts of a handover that have a file of their own; see takeover.h. */
#ifndef WEFT_TARGET_TAKEOVER_PARTS_H
#define WEFT_TARGET_TAKEOVER_PARTS_H

#include "target/takeover/takeover.h"
#include "target/internal.h"

/* paths.c: ANA, instances, cross-controller resets */
int tgt_paths_export_subsys(struct weft_subsys_state *state, const struct weft_subsys *s);
int tgt_paths_export_ctrl(struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);
void tgt_paths_free_subsys_state(struct weft_subsys_state *state);
void tgt_paths_free_ctrl_state(struct weft_ctrl_state *state);
int tgt_paths_import_subsys(const struct weft_subsys_state *state, struct weft_subsys *s,
			    struct weft_err *err);
/* Its subsystem's are taken, and its host and port are known. */
int tgt_paths_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);

/* admin/ccr_log.c: what its log tells, TGT_CCR_ENTRIES_MAX at most, and an entry of it. */
unsigned tgt_ccr_export(struct tgt_ctrl *ctrl, struct weft_takeover_entry *entries);
int tgt_ccr_import(struct tgt_ctrl *ctrl, const struct weft_takeover_entry *entry);

/* store.c: what a subsystem has in common with other processes */
int tgt_store_export(struct weft_subsys_state *state, const struct weft_subsys *s);
void tgt_store_free_state(struct weft_subsys_state *state);
/* Its paths are taken. The descriptor is the store's, also when it fails. */
int tgt_store_import(struct weft_subsys_state *state, struct weft_subsys *s, struct weft_err *err);

/* resv.c: what a controller still has to tell its host of reservations */
int tgt_resv_export_ctrl(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl);
void tgt_resv_free_ctrl_state(struct weft_ctrl_state *state);
int tgt_resv_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);

#endif
