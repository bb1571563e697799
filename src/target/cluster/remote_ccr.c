/* remote_ccr.c - Cross-Controller Reset (CCR) of a controller that another member has.
 *
 *   node 2: command ─▶ record "reset/7": requested ─▶ node 1: ends controller 7, drains it
 *   node 2: answers its host ◀── record "reset/7": done ◀────────┘
 *     └─▶ removes the record
 *
 * Neither side keeps other notes: both compare records with controllers and do what is missing, so
 * either may die at any time. A dead member need not answer: when it has no residual I/O, its
 * controllers have none.
 *
 * Invariant: "done" is written by the member that gives that controller number, when it has no such
 * instance. */
#include "target/cluster/remote_ccr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"

enum { RESETS_MAX = 64, LEFT_MS = 1, FAILED_MS = 1000 };

static const char prefix[] = "reset/";

static void remote_ccr_reconcile(struct tgt_cluster *c);

static void remote_ccr_key(uint16_t cntlid, char key[TGT_CLUSTER_KEY])
{
	snprintf(key, TGT_CLUSTER_KEY, "%s%u", prefix, cntlid);
}

static unsigned node_of_cntlid(const struct tgt_cluster *c, uint16_t cntlid)
{
	unsigned share = c->subsys->cntlid_last - c->subsys->cntlid_first + 1u;
	unsigned node = cntlid ? (cntlid - 1) / share + 1 : 0;

	return node <= c->view.nodes ? node : 0;
}

unsigned tgt_cluster_node_of_cntlid(const struct weft_subsys *s, uint16_t cntlid)
{
	unsigned node = s->cluster ? node_of_cntlid(s->cluster, cntlid) : 0;

	return node && node != s->cluster->view.self ? node : 0;
}

static bool node_is_alive(const struct tgt_cluster *c, unsigned node)
{
	return weft_store_alive(c->subsys->store, node);
}

/* --- commits, one record at a time ------------------------------------------------------------ */

static void remote_ccr_written(struct weft_store_txn *txn, int rc)
{
	struct tgt_cluster *c = container_of(txn, struct tgt_cluster, reset_txn);

	assert(c->reset_writing);
	c->reset_writing = false;
	if (rc == -ECANCELED || rc == -EOWNERDEAD) /* the store closes, or we are no member */
		return;
	if (rc == 0 || rc == -ESTALE) {
		remote_ccr_reconcile(c);
		return;
	}
	weft_error("%s: a reset of a controller cannot be told: %s; trying again", c->subsys->nqn,
		   strerror(-rc));
	weft_timer_set(c->subsys->target->control, &c->reset_timer, FAILED_MS);
}

/* @reset NULL: the record is removed. */
static void write_record(struct tgt_cluster *c, uint16_t cntlid,
			 const struct remote_ccr_record *reset, uint64_t version)
{
	assert(!c->reset_writing);
	remote_ccr_key(cntlid, c->reset_key);
	if (reset)
		remote_ccr_encode(reset, c->reset_bytes);
	c->reset_write = (struct weft_store_write){
		.key = c->reset_key,
		.version = version,
		.value = reset ? c->reset_bytes : NULL,
		.len = reset ? REMOTE_CCR_RECORD : 0,
	};
	c->reset_txn = (struct weft_store_txn){ &c->reset_write, 1, remote_ccr_written };
	c->reset_writing = true;
	weft_store_commit(c->subsys->store, &c->reset_txn);
}

/* --- requests of this member ------------------------------------------------------------------ */

static bool same_request(const struct remote_ccr_record *a, const struct remote_ccr_record *b)
{
	return a->asker == b->asker && a->cntlid == b->cntlid && a->ciu == b->ciu &&
	       a->cirn == b->cirn && a->session == b->session && !strcmp(a->hostnqn, b->hostnqn) &&
	       !memcmp(a->hostid, b->hostid, sizeof(a->hostid));
}

static void request_finish(struct tgt_remote_ccr *reset, int rc)
{
	tgt_cluster_ccr_cancel(reset);
	reset->done(reset, rc);
}

/* True: a record is being written; check again when it is. */
static bool request_reset(struct tgt_cluster *c, struct tgt_remote_ccr *reset)
{
	const struct weft_store_record *record;
	struct remote_ccr_record there;
	char key[TGT_CLUSTER_KEY];

	remote_ccr_key(reset->what.cntlid, key);
	record = weft_store_get(c->subsys->store, key);
	if (!record || remote_ccr_decode(&there, record->value, record->len) < 0) {
		write_record(c, reset->what.cntlid, &reset->what, record ? record->version : 0);
		return true;
	}
	if (same_request(&there, &reset->what) && there.state != REMOTE_CCR_REQUESTED)
		request_finish(reset, there.state == REMOTE_CCR_DONE ? 0 : -EPERM);
	return false;
}

static bool process_own_requests(struct tgt_cluster *c)
{
	struct tgt_remote_ccr *reset, *tmp;
	bool wait = false;

	weft_list_for_each_safe(reset, tmp, &c->resets, link) {
		unsigned node = node_of_cntlid(c, reset->what.cntlid);

		assert(node && node != c->view.self);
		if (node_is_alive(c, node)) {
			if (request_reset(c, reset))
				return true;
		} else if (tgt_cluster_has_residual_io(c->subsys, 0, node)) {
			wait = true;
		} else {
			request_finish(reset, 0);
		}
	}
	if (wait)
		weft_timer_set(c->subsys->target->control, &c->reset_timer, LEFT_MS);
	return false;
}

/* --- requests of other members, and records that are done ------------------------------------- */

static bool is_awaited(const struct tgt_cluster *c, const struct remote_ccr_record *there)
{
	struct tgt_remote_ccr *reset;

	weft_list_for_each(reset, &c->resets, link)
		if (same_request(&reset->what, there))
			return true;
	return false;
}

/* Nobody waits for the reset any more, and this member is to remove the record. */
static bool record_is_obsolete(const struct tgt_cluster *c, const struct remote_ccr_record *there)
{
	bool owner = node_of_cntlid(c, there->cntlid) == c->view.self;
	bool asker = there->asker == c->view.self;

	if (there->session != weft_store_session(c->subsys->store) ||
	    !node_is_alive(c, there->asker))
		return owner || asker;
	return asker && !is_awaited(c, there) &&
	       (there->state != REMOTE_CCR_REQUESTED ||
		!node_is_alive(c, node_of_cntlid(c, there->cntlid)));
}

/* Ends the controller; when it is gone, the records are checked again. */
static bool execute_reset(struct tgt_cluster *c, struct remote_ccr_record *there, uint64_t version)
{
	struct tgt_ctrl *ctrl = tgt_ccr_find(c->subsys, there->cntlid, there->ciu, there->cirn);
	char why[64];

	if (ctrl && tgt_ctrl_is_of_host(ctrl, there->hostnqn, there->hostid)) {
		snprintf(why, sizeof(why), "its host resets it through node %u", there->asker);
		tgt_ctrl_kill(ctrl, why);
		return false;
	}
	there->state = ctrl ? REMOTE_CCR_DENIED : REMOTE_CCR_DONE;
	write_record(c, there->cntlid, there, version);
	return true;
}

/* A record under another's key would be ignored when its own key is written. */
static bool process_record(struct tgt_cluster *c, const struct weft_store_record *record)
{
	char key[TGT_CLUSTER_KEY];
	struct remote_ccr_record there;

	if (remote_ccr_decode(&there, record->value, record->len) < 0)
		return false;
	remote_ccr_key(there.cntlid, key);
	if (strcmp(record->key, key))
		return false;
	if (record_is_obsolete(c, &there)) {
		write_record(c, there.cntlid, NULL, record->version);
		return true;
	}
	return there.state == REMOTE_CCR_REQUESTED &&
	       node_of_cntlid(c, there.cntlid) == c->view.self &&
	       execute_reset(c, &there, record->version);
}

static void process_records(struct tgt_cluster *c)
{
	const struct weft_store_record *record = weft_store_next(c->subsys->store, prefix);

	while (record && !strncmp(record->key, prefix, strlen(prefix)) &&
	       !process_record(c, record))
		record = weft_store_next(c->subsys->store, record->key);
}

/* A process that is no member any more does not know which members live. */
static void remote_ccr_reconcile(struct tgt_cluster *c)
{
	if (c->reset_writing || c->subsys->removing || tgt_store_is_frozen(c->subsys->target) ||
	    weft_store_is_lost(c->subsys->store))
		return;
	if (!process_own_requests(c))
		process_records(c);
}

void tgt_cluster_ccr_reconcile(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->cluster)
		remote_ccr_reconcile(s->cluster);
}

/* --- start and cancel ------------------------------------------------------------------------- */

static void remote_ccr_timer_fired(struct weft_timer *timer)
{
	remote_ccr_reconcile(container_of(timer, struct tgt_cluster, reset_timer));
}

void tgt_cluster_ccr_init(struct tgt_cluster *c)
{
	weft_list_init(&c->resets);
	c->reset_timer.fn = remote_ccr_timer_fired;
}

static void request_expired(struct weft_timer *timer)
{
	struct tgt_remote_ccr *reset = container_of(timer, struct tgt_remote_ccr, limit);

	reset->done(reset, -ETIMEDOUT);
}

int tgt_cluster_ccr_start(struct tgt_remote_ccr *reset, struct tgt_ctrl *asked,
			  const struct nvme_ccr_cmd *cmd, unsigned limit_ms)
{
	struct tgt_cluster *c = asked->subsys->cluster;
	unsigned under_way = 0;

	assert_on_control(asked->subsys->target);
	assert(c);
	for (struct weft_list *link = c->resets.next; link != &c->resets; link = link->next)
		under_way++;
	if (under_way == RESETS_MAX)
		return -EBUSY;
	reset->cluster = c;
	reset->what = (struct remote_ccr_record){
		.state = REMOTE_CCR_REQUESTED,
		.asker = (uint8_t)c->view.self,
		.cntlid = le16_to_cpu(cmd->icid),
		.ciu = cmd->ciu,
		.cirn = le64_to_cpu(cmd->cirn),
		.session = weft_store_session(c->subsys->store),
	};
	memcpy(reset->what.hostid, asked->hostid, sizeof(reset->what.hostid));
	strcpy(reset->what.hostnqn, asked->hostnqn);
	weft_list_push(&c->resets, &reset->link);
	reset->limit.fn = request_expired;
	weft_timer_set(c->subsys->target->control, &reset->limit, limit_ms);
	remote_ccr_reconcile(c);
	return 0;
}

void tgt_cluster_ccr_cancel(struct tgt_remote_ccr *reset)
{
	assert_on_control(reset->cluster->subsys->target);
	weft_list_remove(&reset->link);
	weft_timer_stop(reset->cluster->subsys->target->control, &reset->limit);
}
