/* admin.h - admin commands, all on the control reactor. */
#ifndef WEFT_TARGET_ADMIN_ADMIN_H
#define WEFT_TARGET_ADMIN_ADMIN_H

#include "target/internal.h"

void tgt_admin(struct weft_req *req);
void tgt_identify(struct weft_req *req);
void tgt_get_features(struct weft_req *req);
void tgt_set_features(struct weft_req *req);
/* A feature's set() returns this when it replies itself. */
enum { TGT_FEATURE_ANSWERED = 0xffff };
void tgt_features_reset(struct tgt_ctrl *ctrl);
void tgt_get_log_page(struct weft_req *req);
/* Log page 0Ch, whole and without namespaces; malloc'ed. NULL: out of memory. */
void *tgt_ana_log_page(struct tgt_ctrl *ctrl, size_t *size);
void *tgt_ana_log_page_rgo(struct tgt_ctrl *ctrl, size_t *size);
void tgt_ccr(struct weft_req *req);
/* NULL: the controller has no such instance. */
struct tgt_ctrl *tgt_ccr_find(struct weft_subsys *s, uint16_t cntlid, uint8_t ciu, uint64_t cirn);
void *tgt_ccr_log_page(struct tgt_ctrl *ctrl, size_t *size);
void tgt_ccr_new_instance(struct tgt_ctrl *ctrl); /* it becomes ready */
void tgt_ccr_remove_completed(struct tgt_ctrl *ctrl);
/* The admin queue of @ctrl ends: gives its requests back. */
void tgt_ccr_abort_requests(struct tgt_ctrl *ctrl);
void tgt_ccr_ctrl_gone(struct tgt_ctrl *ctrl);
void tgt_abort(struct weft_req *req);
void tgt_aer(struct weft_req *req);
void tgt_aer_cancel_all(struct tgt_ctrl *ctrl, uint16_t status);
bool tgt_aer_cancel(struct tgt_ctrl *ctrl, uint16_t cid);
void tgt_event_raise(struct tgt_ctrl *ctrl, enum tgt_event event);
/* The log page of @event was read. */
void tgt_event_log_was_read(struct tgt_ctrl *ctrl, enum tgt_event event);
void tgt_ns_notify_changed(struct weft_subsys *s, uint32_t nsid);
uint8_t tgt_health_warnings(struct weft_subsys *s); /* Critical Warning */
/* Answers with @size bytes of @data. */
void tgt_reply_data(struct weft_req *req, const void *data, size_t size);
extern const struct tgt_command_info tgt_admin_commands[];
uint8_t tgt_event_log_page(enum tgt_event event);
uint32_t tgt_feature_initial(const struct tgt_ctrl *ctrl, uint8_t fid);
uint32_t tgt_feature_effects(uint8_t fid); /* Feature Identifiers Supported and Effects */

#endif
