/* takeover.h - a target that stands still, as the process needs it that goes on with it.
 *
 *   freeze ─▶ hand over ──▶ (another process) inherit ─▶ thaw
 *      └────── thaw: as if nothing had happened
 *
 * Every call is made on the control reactor. A frozen target executes nothing, so that whoever
 * thaws it, here or there, is the only one who does. Namespaces are not part of it: the successor
 * has them already. */
#ifndef WEFT_TARGET_TAKEOVER_TAKEOVER_H
#define WEFT_TARGET_TAKEOVER_TAKEOVER_H

#include "base/items.h"
#include "target/target.h"
#include "transport/transport.h"

struct weft_listener_state {
	char uri[WEFT_URI_MAX];
	uint32_t portid;
	int fd;
};

struct weft_totals_state {
	uint64_t reads, writes, read_bytes, write_bytes;
	uint64_t media_errors; /* of a subsystem */
};

struct weft_ns_errors_state {
	uint32_t nsid;
	uint64_t reads, writes;
};

/* Something that has a number: what it has come to. */
struct weft_takeover_entry {
	uint32_t id, value;
	uint64_t count;
};

struct weft_subsys_state {
	char nqn[WEFT_NQN_MAX + 1];
	uint32_t cntlid; /* the last that was given */
	struct weft_totals_state totals;
	struct weft_items ns_errors;   /* struct weft_ns_errors_state: namespaces that have some */
	struct weft_items ana_rules;   /* struct weft_ana_rule */
	struct weft_items ana_changed; /* struct weft_takeover_entry: group and count */
	uint64_t ana_count;
	struct weft_items elsewhere;   /* bytes: a bit for each group that others serve */
	bool draining;                 /* it takes no group */
	struct weft_store_state store; /* of the discovery subsystem: nothing */
};

struct weft_feature_state {
	uint32_t fid, value;
};

struct weft_ctrl_state {
	char nqn[WEFT_NQN_MAX + 1], hostnqn[WEFT_NQN_MAX + 1], hostid[37];
	uint32_t cntlid, cc, csts, io_queues;
	uint32_t kato_ms, kato_left_ms;
	bool traffic;
	struct weft_items features; /* struct weft_feature_state: those that were changed */
	uint64_t timestamp_ms, timestamp_age_ms;
	bool timestamp_by_host;
	struct weft_items pending, masked; /* uint32_t: events, by their log pages */
	struct weft_items changed;         /* uint32_t: namespaces */
	uint64_t nerrors;
	uint32_t portid, ciu, cirn_low, cirn_high;
	struct weft_items ana;    /* struct weft_takeover_entry: group, enum weft_ana_state if it is
				     * not what the rules say */
	struct weft_items ccrs;   /* struct weft_takeover_entry: controller; CIU and status << 8 */
	struct weft_items errors; /* bytes: entries of the error log, the oldest first */
	struct weft_items behavior; /* bytes: Host Behavior Support */
	uint64_t resv_count;
	struct weft_items
		resv_pages; /* bytes: Reservation Notification log pages, the oldest first */
	struct weft_items resv_masks; /* bytes, by nsid */
};

struct weft_queue_state {
	uint32_t ctrl; /* its number among the controllers, from 1; 0: before Connect */
	struct weft_qpair_state qpair;
	struct weft_totals_state totals;
};

struct weft_target_state {
	uint64_t genctr;
	struct weft_items listeners, subsystems, ctrls, queues;
};

/* All that is under way ends, nothing new begins; then @done. -ETIMEDOUT: somebody did not come to
 * rest within @limit_ms, @err says who, and the target has gone on. */
void weft_target_freeze(struct weft_target *t, uint32_t limit_ms,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg);
/* Frozen, or made frozen by weft_target_start_frozen(). */
void weft_target_thaw(struct weft_target *t);

/* What is frozen; descriptors in it stay the target's. */
int weft_target_export(struct weft_target *t, struct weft_target_state *state);
/* Frees what it points to; closes nothing. */
void weft_target_state_free(struct weft_target_state *state);

/* A new target waits for weft_target_thaw() before it serves anybody. */
void weft_target_start_frozen(struct weft_target *t);
/* Into a target that was started so and has the same subsystems. Descriptors and bytes of @state
 * are the target's from now on. -EINVAL: it makes no sense, @err says what. */
void weft_target_import(struct weft_target *t, struct weft_target_state *state,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg);

#endif
