/* guide.h - discovery services that a controller's paths come from (paths=discover).
 *
 *   URI?paths=discover ─▶ guide ─▶ log ─┬─▶ places of the subsystem ─▶ paths come and go
 *        guide.c           │ ▲          └─▶ referrals ─▶ guides          listed.c
 *                          │ └ guide_log.c: again, when an event says that it changed
 *                          └ a controller of its own, on its owner's home, for as long as that is
 *
 * Everything here is home's, but for what stands under the owner's lock.
 *
 * Invariant: what a guide lists is one whole log. What could not be read whole changes nothing. */
#ifndef WEFT_HOST_GUIDE_H
#define WEFT_HOST_GUIDE_H

#include "host/internal.h"

enum {
	HOST_GUIDES_MAX = 16,
	HOST_LISTED_MAX = 2 * HOST_PATHS_MAX, /* of a kind, of one log: more are of no use */
};

struct host_spot {
	const struct weft_link_transport *transport;
	struct sockaddr_storage addr;
};

/* What a log says, as far as it matters. */
struct host_listing {
	struct host_spot places[HOST_LISTED_MAX];    /* of the subsystem */
	struct host_spot referrals[HOST_LISTED_MAX]; /* of other discovery services */
	unsigned nplaces, nreferrals;
};

/* guide_log.c: a log that is being read. */
struct host_reading {
	struct host_admin cmd;
	struct weft_timer again;
	bool out, stale; /* commands are out; what they bring has changed meanwhile */
	unsigned rounds;
	uint64_t generation, total, at; /* entries */
	char *page;
	struct host_listing listing; /* so far */
};

struct host_guide {
	struct weft_list link;     /* owner->guides */
	struct weft_ctrl *owner;   /* whose paths it tells of */
	struct weft_ctrl *ctrl;    /* the connection */
	struct host_config wanted; /* of the paths that it tells of */
	unsigned depth;            /* referrals that lead to it; 0: it was given */
	enum weft_state state;     /* as it was told last */
	unsigned generation;       /* of the association through which it was read last */
	struct host_reading reading;
	struct host_listing listing; /* the newest that is whole */
	bool answered;               /* there is one */
	bool fresh;                  /* it is new: paths that are dead get another chance */
	bool over;
	struct weft_msg msg;

	/* Under owner->lock. */
	bool tried; /* its first log counts, or there is none */
	int rc;     /* 0, or why it tells of no path */
	struct weft_err why;
	char address[128]; /* where it was looked for */
};

/* guide.c */
void host_guides_init(struct weft_ctrl *ctrl);
/* Before home has begun. @place: a URI with paths=discover. */
int host_guide_add(struct weft_ctrl *ctrl, const struct host_place *place, struct weft_err *err);
/* A referral, on home. */
void host_guide_refer(struct host_guide *from, const struct host_spot *spot);
void host_guides_start(struct weft_ctrl *ctrl);
void host_guides_stop(struct weft_ctrl *ctrl);
void host_guides_free(struct weft_ctrl *ctrl);
void host_guide_drop(struct host_guide *guide); /* nobody refers to it any more */
void host_guide_over(struct host_guide *guide); /* it was told to stop, and has */
void host_guide_look(struct host_guide *guide); /* its connection has another state */
/* Its log has been read whole, or cannot be. */
void host_guide_answered(struct host_guide *guide);
void host_guide_failed(struct host_guide *guide, int rc, const struct weft_err *why);
/* Under ctrl->lock: one has not said yet what it lists. */
bool host_guides_awaited(const struct weft_ctrl *ctrl);
bool host_guide_leads_to(const struct host_guide *guide, const struct host_spot *spot);
static inline struct host_path *host_guide_path(const struct host_guide *guide)
{
	return guide->ctrl->paths[0];
}

/* guide_log.c */
void host_guide_read(struct host_guide *guide); /* again, if it is being read */
void host_guide_read_stop(struct host_guide *guide);

/* listed.c: what is listed becomes what there is, soon. */
void host_review_soon(struct weft_ctrl *ctrl);
void host_review(struct weft_task *task);

#endif
