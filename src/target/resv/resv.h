/* resv.h - reservations: which hosts may use a namespace while one of them has reserved it.
 *
 *   command ─▶ control reactor: rules ─▶ store: commit ─▶ changed, in every member
 *       ─▶ publish the view, barrier, abort commands ─▶ acknowledge
 *       ─▶ settled: all members have acknowledged ─▶ the command is answered
 *
 * The state is in the store; a reactor reads a view of it, published with the namespace. */
#ifndef WEFT_TARGET_RESV_RESV_H
#define WEFT_TARGET_RESV_RESV_H

#include "store/store.h"
#include "target/internal.h"
#include "target/resv/state.h"

/* What a reactor reads of a reservation. Published, replaced, never changed. */
struct resv_view {
	struct resv_view *next_old; /* list of replaced views; the control reactor's */
	uint8_t rtype;
	uint8_t holder[RESV_HOST_BYTES]; /* unless all registrants hold it */
	unsigned nhosts;
	uint8_t hosts[][RESV_HOST_BYTES]; /* registrants, ascending */
};

/* view.c */
/* NULL and 0: nobody has reserved it. */
int tgt_resv_view_new(const struct resv_state *st, struct resv_view **view);
/* May @host send a command with this opcode? */
bool tgt_resv_view_allows(const struct resv_view *view, const uint8_t host[RESV_HOST_BYTES],
			  uint8_t opcode);

/* command.c: on the reactor of their queue */
void tgt_resv_change(struct weft_req *req); /* Register, Acquire, Release */
/* On the control reactor. */
void tgt_resv_set_persist(struct weft_req *req, bool ptpl);

/* report.c: on the reactor of its queue */
void tgt_resv_report(struct weft_req *req);

/* apply.c: on the control reactor */
enum { TGT_RESV_KEY = 48 };
void tgt_resv_key(const struct tgt_ns *ns, char key[TGT_RESV_KEY]);
/* The namespace's state in our copy of the store; its record may be NULL. */
int tgt_resv_state(const struct tgt_ns *ns, struct resv_state *st,
		   const struct weft_store_record **record);
int tgt_resv_load(struct tgt_ns *ns); /* for a new namespace, before it is published */
int tgt_resv_start(struct weft_subsys *s);
void tgt_resv_store_moved(struct weft_subsys *s); /* the store changed */
/* All that the store has of reservations is applied here. */
bool tgt_resv_is_idle(const struct weft_subsys *s);
/* Calls @stopped when nothing is under way here; later revisions are not applied. */
void tgt_resv_stop(struct weft_subsys *s, void (*stopped)(struct weft_subsys *s));

/* sweep.c: on the control reactor, when namespaces were added or one was removed */
void tgt_resv_sweep(struct weft_subsys *s);

/* preempt_abort.c: on a reactor */
/* A host whose commands in a namespace are to end. */
struct resv_victim {
	uint64_t ns_serial;
	uint8_t host[RESV_HOST_BYTES];
};
void tgt_resv_victims_sort(struct resv_victim *victims,
			   unsigned n); /* on the control reactor: sorts them */
/* The walk over a reactor's connections; zeroed but for the victims, which are sorted. */
struct resv_abort {
	const struct resv_victim *victims;
	unsigned n;
	struct weft_qpair_iter walk;
	struct weft_req_iter reqs; /* of the connection that it is at */
	bool again; /* commands that storage had the first time are looked at, and no others */
	bool begun;
	bool ended; /* storage has no command of the connections that were visited */
};
/* Aborts commands that wait; false: call it again in the next turn. */
bool tgt_resv_abort(struct weft_poll_group *group, struct resv_abort *abort);

/* notice_dispatch.c: on the control reactor */
struct resv_dispatch {
	uint32_t nsid;
	uint64_t ns_serial;
	struct resv_dispatch_item *items; /* by host */
	unsigned n;                       /* 0: nothing to dispatch */
	unsigned bucket;                  /* of controllers by their id: the next one */
};
/* -ENOMEM: @dispatch is as before. */
int tgt_resv_dispatch_begin(struct resv_dispatch *dispatch, const struct tgt_ns *ns,
			    const struct resv_notice *notices, unsigned n);
/* Returns the cost. */
unsigned tgt_resv_dispatch_to_ctrl(const struct resv_dispatch *dispatch, struct tgt_ctrl *ctrl);
void tgt_resv_dispatch_end(struct resv_dispatch *dispatch); /* twice is harmless */

/* notification_log.c: on the control reactor */
void tgt_resv_notify(struct tgt_ctrl *ctrl, uint32_t nsid, uint8_t type);
void *tgt_resv_log_page(struct tgt_ctrl *ctrl, size_t *size);
void tgt_resv_log_read(
	struct tgt_ctrl *ctrl); /* removes the page that was read; the next one follows */
void tgt_resv_log_reset(struct tgt_ctrl *ctrl);

/* features.c: on the control reactor, as the table of features calls them */
enum {
	TGT_RESV_MASKS = 1 << NVME_RESV_NOTIFY_RNLPT_REGISTRATION_PREEMPTED |
			 1 << NVME_RESV_NOTIFY_RNLPT_RESERVATION_RELEASED |
			 1 << NVME_RESV_NOTIFY_RNLPT_RESERVATION_PREEMPTED,
};
uint16_t tgt_set_resv_mask(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value);
uint16_t tgt_get_resv_mask(struct weft_req *req, struct tgt_ctrl *ctrl);
uint16_t tgt_set_resv_persist(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value);
uint16_t tgt_get_resv_persist(struct weft_req *req, struct tgt_ctrl *ctrl);

#endif
