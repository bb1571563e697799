/* ana.h - Asymmetric Namespace Access (ANA): through which controller a group of namespaces is
 * reached.
 *
 *   rules of the subsystem ─▶ (control reactor) what each controller shows, by group
 *       ─▶ (reactors) every command
 *
 * A rule is for all controllers, for those that came through one port, for those of one host, or
 * both; the most specific one decides, and where there is none a group is optimized.
 *
 * Invariant: when a change is over, no command that was admitted before it is at work in a group
 * through a controller that no longer gives access to it. */
#ifndef WEFT_TARGET_ANA_H
#define WEFT_TARGET_ANA_H

#include <stdint.h>

#include "base/list.h"
#include "target/target.h"

struct tgt_ctrl;
struct tgt_ns;
struct weft_req;

enum { TGT_ANA_RULES_MAX = 4096, TGT_ANATT_S = 30 };

/* The rules of a subsystem at one time; replaced as a whole. */
struct ana_rules {
	/* By group - 1: another member of the cluster serves it, whatever rules say. */
	bool elsewhere[WEFT_ANA_GROUP_MAX];
	unsigned count;
	struct weft_ana_rule at[];
};

/* The ANA state of a subsystem; belongs to the control reactor. */
struct tgt_ana {
	struct ana_rules *rules;
	struct ana_rules *next;   /* rules of the change under way; NULL: there is none */
	struct weft_list waiting; /* changes that are queued behind it */
	bool lost;                /* no group is accessible any more, through any controller */
	uint64_t count;           /* how often the log page of some controller changed */
	uint64_t changed[WEFT_ANA_GROUP_MAX]; /* by group - 1: the last time that it did */
};

/* ana_rules.c */
/* 0, or -errno if these cannot be the rules of a subsystem. */
int tgt_ana_rules_check(const struct weft_ana_rule *rules, unsigned count, struct weft_err *err);
/* A copy of @old, which may be NULL, with @rules in the place of rules for the same group, port and
 * host. NULL: out of memory. */
struct ana_rules *tgt_ana_rules_with(const struct ana_rules *old, const struct weft_ana_rule *rules,
				     unsigned count);
/* The states that a controller of @hostnqn that came through @portid shows. */
void tgt_ana_evaluate(const struct ana_rules *rules, uint16_t portid, const char *hostnqn,
		      uint8_t states[WEFT_ANA_GROUP_MAX]);

/* ana.c */
int tgt_ana_init(struct weft_subsys *s, const struct weft_subsys_options *options);
void tgt_ana_free(struct weft_subsys *s);
uint8_t tgt_ana_wire(uint8_t state); /* the state's value in the log page */
/* On any reactor: 0, or the status that a command of @ctrl for @ns is answered with. */
uint16_t tgt_ana_check(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns);
/* The same for the namespace that an admin command names; 0 where it names none. On the control
 * reactor. */
uint16_t tgt_ana_check_nsid(struct tgt_ctrl *ctrl, uint32_t nsid);
/* NUSE is not known where the namespace cannot be reached. */
bool tgt_ana_knows_usage(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns);
void tgt_ana_ns_changed(struct weft_subsys *s, uint32_t group); /* a namespace came or went */

/* What a controller would show that connected now. @hostnqn "": a host that no rule names. */
void tgt_ana_states_now(const struct weft_subsys *s, uint16_t portid, const char *hostnqn,
			uint8_t states[WEFT_ANA_GROUP_MAX]);
/* What a controller shows: a new one whose host and port are known; one at the begin of a change;
 * one at its end. true: its states have changed. */
void tgt_ana_ctrl_init(struct tgt_ctrl *ctrl);
bool tgt_ana_show_transition(struct tgt_ctrl *ctrl);
bool tgt_ana_show_states(struct tgt_ctrl *ctrl);
void tgt_ana_persistent_loss(struct tgt_ctrl *ctrl); /* of all groups, while the controller lives */

/* ana_change.c */
/* This process serves other groups now; @elsewhere is copied. -ENOMEM: nothing changes. */
int tgt_ana_set_served_groups(struct weft_subsys *s, const bool elsewhere[WEFT_ANA_GROUP_MAX],
			      void (*done)(void *arg, int rc, const struct weft_err *err),
			      void *arg);
/* All groups are lost for good, at once, also during a change; nobody waits for commands at
 * work. */
void tgt_ana_persistent_loss_all(struct weft_subsys *s);
/* On the reactor of @req, a command that a change waits for. */
void tgt_ana_command_left(struct weft_req *req);
bool tgt_ana_is_idle(const struct weft_subsys *s);  /* no change is under way */
void tgt_ana_cancel_waiting(struct weft_subsys *s); /* drops queued changes */

#endif
