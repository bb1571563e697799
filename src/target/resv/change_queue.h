/* change_queue.h - the change queue: changes of reservations on their way to the store; on the
 * control reactor. */
#ifndef WEFT_TARGET_RESV_CHANGE_QUEUE_H
#define WEFT_TARGET_RESV_CHANGE_QUEUE_H

#include "target/internal.h"
#include "target/resv/state.h"

/* Queues @rq for the reservation of the command's namespace and answers @req later; fills in the
 * host. */
void tgt_resv_submit_change(struct weft_req *req, const struct resv_request *rq);
/* Drops the replies of changes that this queue waits for. */
void tgt_resv_queue_closing(struct tgt_queue *queue);
/* The target's task. */
void tgt_resv_run_change_queues(struct weft_task *task);

#endif
