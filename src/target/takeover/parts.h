/* parts.h - the parts of a target's export and import that have a file of their own; see
 * takeover.h. */
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
/* The subsystem's paths are imported, and the controller's host and port are known. */
int tgt_paths_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);

/* admin/ccr_log.c: exports the log, at most TGT_CCR_ENTRIES_MAX entries, and imports an entry. */
unsigned tgt_ccr_export(struct tgt_ctrl *ctrl, struct weft_takeover_entry *entries);
int tgt_ccr_import(struct tgt_ctrl *ctrl, const struct weft_takeover_entry *entry);

/* store.c: the store that a subsystem shares with other processes */
int tgt_store_export(struct weft_subsys_state *state, const struct weft_subsys *s);
void tgt_store_free_state(struct weft_subsys_state *state);
/* After the paths. The store owns the descriptor, also when this fails. */
int tgt_store_import(struct weft_subsys_state *state, struct weft_subsys *s, struct weft_err *err);

/* resv.c: reservation notifications that a controller has not delivered yet */
int tgt_resv_export_ctrl(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl);
void tgt_resv_free_ctrl_state(struct weft_ctrl_state *state);
int tgt_resv_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl);

#endif
