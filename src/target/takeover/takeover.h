/* takeover.h - takeover: a frozen target moves to another process.
 *
 *   old process: freeze ─▶ export ──▶ successor: import ─▶ thaw
 *                   └────── it failed ─▶ thaw, as if nothing had happened
 *
 * Every call is made on the control reactor. A frozen target executes nothing, so only the process
 * that thaws it serves hosts. Namespaces are not exported: the successor has opened them
 * already. */
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

/* A number, and its value. */
struct weft_takeover_entry {
	uint32_t id, value;
	uint64_t count;
};

struct weft_subsys_state {
	char nqn[WEFT_NQN_MAX + 1];
	uint32_t cntlid; /* the id that was given last */
	struct weft_totals_state totals;
	struct weft_items ns_errors;   /* struct weft_ns_errors_state: namespaces with errors */
	struct weft_items ana_rules;   /* struct weft_ana_rule */
	struct weft_items ana_changed; /* struct weft_takeover_entry: group and count */
	uint64_t ana_count;
	struct weft_items elsewhere;   /* bytes: a bit for each group that others serve */
	bool draining;                 /* it claims no group */
	struct weft_store_state store; /* empty for the discovery subsystem */
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
	/* struct weft_takeover_entry: group and enum weft_ana_state, where the rules say another
	 * one. */
	struct weft_items ana;
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

/* Ends everything under way and begins nothing new; then @done. -ETIMEDOUT: @err says who was still
 * busy after @limit_ms, and the target was thawed. */
void weft_target_freeze(struct weft_target *t, uint32_t limit_ms,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg);
/* After weft_target_freeze() or weft_target_start_frozen(). */
void weft_target_thaw(struct weft_target *t);

/* Exports a frozen target; descriptors in @state stay the target's. */
int weft_target_export(struct weft_target *t, struct weft_target_state *state);
/* Frees the memory of @state; closes nothing. */
void weft_target_state_free(struct weft_target_state *state);

/* A new target waits for weft_target_thaw() before it serves anybody. 0 or -ENOMEM. */
int weft_target_start_frozen(struct weft_target *t);
/* Into a target that was started frozen and has the same subsystems. The target owns the
 * descriptors and bytes of @state from now on. -EINVAL: @state is not valid, @err says why. */
void weft_target_import(struct weft_target *t, struct weft_target_state *state,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg);

#endif
