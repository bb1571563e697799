/* reset.c - a host ends a controller of another member, which it cannot reach any more.
 *
 *   node 2: asked ─▶ record "reset/7": asked ─▶ node 1: controller 7 ends, storage gives back what it
 *                                                       has of it
 *   node 2: told ◀── record "reset/7": over  ◀──────────┘
 *     └─▶ the record goes
 *
 * Nobody keeps a note of what is under way: each looks at the records, and at its controllers, and
 * does what is missing. So either side can die at any moment. A member that is gone need not
 * answer: when storage has nothing of it, nor has it anything of its controllers.
 *
 * Invariant: "over" is written by who gives that number, when it has no such instance. */
#include "target/cluster/reset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"

enum { RESETS_MAX = 64, LEFT_MS = 1, FAILED_MS = 1000 };

static const char prefix[] = "reset/";

static void look(struct tgt_cluster *c);

static void make_key(uint16_t cntlid, char key[TGT_CLUSTER_KEY])
{
	snprintf(key, TGT_CLUSTER_KEY, "%s%u", prefix, cntlid);
}

static unsigned node_of(const struct tgt_cluster *c, uint16_t cntlid)
{
	unsigned share = c->subsys->cntlid_last - c->subsys->cntlid_first + 1u;
	unsigned node = cntlid ? (cntlid - 1) / share + 1 : 0;

	return node <= c->view.nodes ? node : 0;
}

unsigned tgt_cluster_node_of(const struct weft_subsys *s, uint16_t cntlid)
{
	unsigned node = s->cluster ? node_of(s->cluster, cntlid) : 0;

	return node && node != s->cluster->view.self ? node : 0;
}

static bool lives(const struct tgt_cluster *c, unsigned node)
{
	return weft_store_alive(c->subsys->store, node);
}

/* --- writing, one record at a time ------------------------------------------------------------ */

static void written(struct weft_txn *txn, int rc)
{
	struct tgt_cluster *c = container_of(txn, struct tgt_cluster, reset_txn);

	c->reset_writing = false;
	if (rc == -ECANCELED || rc == -EOWNERDEAD) /* the end; we are no member */
		return;
	if (rc == 0 || rc == -ESTALE) {
		look(c);
		return;
	}
	weft_error("%s: a reset of a controller cannot be told: %s; trying again", c->subsys->nqn,
		   strerror(-rc));
	weft_timer_set(c->subsys->target->home, &c->reset_timer, FAILED_MS);
}

/* @reset NULL: the record goes. */
static void put(struct tgt_cluster *c, uint16_t cntlid, const struct reset *reset, uint64_t version)
{
	make_key(cntlid, c->reset_key);
	if (reset)
		reset_encode(reset, c->reset_bytes);
	c->reset_write = (struct weft_store_write){
		.key = c->reset_key,
		.version = version,
		.value = reset ? c->reset_bytes : NULL,
		.len = reset ? RESET_RECORD : 0,
	};
	c->reset_txn = (struct weft_txn){ &c->reset_write, 1, written };
	c->reset_writing = true;
	weft_store_commit(c->subsys->store, &c->reset_txn);
}

/* --- those that we ask for -------------------------------------------------------------------- */

static bool same(const struct reset *a, const struct reset *b)
{
	return a->asker == b->asker && a->cntlid == b->cntlid && a->ciu == b->ciu &&
	       a->cirn == b->cirn && a->session == b->session && !strcmp(a->hostnqn, b->hostnqn) &&
	       !memcmp(a->hostid, b->hostid, sizeof(a->hostid));
}

static void end(struct tgt_reset *reset, int rc)
{
	tgt_cluster_reset_forget(reset);
	reset->done(reset, rc);
}

/* True: a record is being written, and there is more to be seen when it is. */
static bool ask(struct tgt_cluster *c, struct tgt_reset *reset)
{
	const struct weft_record *record;
	struct reset there;
	char key[TGT_CLUSTER_KEY];

	make_key(reset->what.cntlid, key);
	record = weft_store_get(c->subsys->store, key);
	if (!record || reset_decode(&there, record->value, record->len) < 0) {
		put(c, reset->what.cntlid, &reset->what, record ? record->version : 0);
		return true;
	}
	if (same(&there, &reset->what) && there.state != RESET_ASKED)
		end(reset, there.state == RESET_OVER ? 0 : -EPERM);
	return false;
}

static bool look_at_own(struct tgt_cluster *c)
{
	struct tgt_reset *reset, *tmp;
	bool wait = false;

	weft_list_for_each_safe(reset, tmp, &c->resets, link) {
		unsigned node = node_of(c, reset->what.cntlid);

		if (lives(c, node)) {
			if (ask(c, reset))
				return true;
		} else if (tgt_cluster_is_left(c->subsys, 0, node)) {
			wait = true;
		} else {
			end(reset, 0);
		}
	}
	if (wait)
		weft_timer_set(c->subsys->target->home, &c->reset_timer, LEFT_MS);
	return false;
}

/* --- those that others ask for, and those that are over --------------------------------------- */

static bool is_awaited(const struct tgt_cluster *c, const struct reset *there)
{
	struct tgt_reset *reset;

	weft_list_for_each(reset, &c->resets, link)
		if (same(&reset->what, there))
			return true;
	return false;
}

/* Nobody waits for it, and it is for us to see that. */
static bool is_to_go(const struct tgt_cluster *c, const struct reset *there)
{
	bool owner = node_of(c, there->cntlid) == c->view.self;
	bool asker = there->asker == c->view.self;

	if (there->session != weft_store_session(c->subsys->store) || !lives(c, there->asker))
		return owner || asker;
	return asker && !is_awaited(c, there) &&
	       (there->state != RESET_ASKED || !lives(c, node_of(c, there->cntlid)));
}

/* The controller ends, and when it has we are here again. */
static bool obey(struct tgt_cluster *c, struct reset *there, uint64_t version)
{
	struct tgt_ctrl *ctrl = tgt_ccr_find(c->subsys, there->cntlid, there->ciu, there->cirn);
	char why[64];

	if (ctrl && tgt_ctrl_is_of(ctrl, there->hostnqn, there->hostid)) {
		snprintf(why, sizeof(why), "its host resets it through node %u", there->asker);
		tgt_ctrl_kill(ctrl, why);
		return false;
	}
	there->state = ctrl ? RESET_DENIED : RESET_OVER;
	put(c, there->cntlid, there, version);
	return true;
}

/* A record that lies under another's key would never be the one that is written. */
static bool look_at_record(struct tgt_cluster *c, const struct weft_record *record)
{
	char key[TGT_CLUSTER_KEY];
	struct reset there;

	if (reset_decode(&there, record->value, record->len) < 0)
		return false;
	make_key(there.cntlid, key);
	if (strcmp(record->key, key))
		return false;
	if (is_to_go(c, &there)) {
		put(c, there.cntlid, NULL, record->version);
		return true;
	}
	return there.state == RESET_ASKED && node_of(c, there.cntlid) == c->view.self &&
	       obey(c, &there, record->version);
}

static void look_at_records(struct tgt_cluster *c)
{
	const struct weft_record *record = weft_store_next(c->subsys->store, prefix);

	while (record && !strncmp(record->key, prefix, strlen(prefix)) &&
	       !look_at_record(c, record))
		record = weft_store_next(c->subsys->store, record->key);
}

/* Who is no member any more does not know who lives. */
static void look(struct tgt_cluster *c)
{
	if (c->reset_writing || c->subsys->removing || c->subsys->target->held ||
	    weft_store_is_lost(c->subsys->store))
		return;
	if (!look_at_own(c))
		look_at_records(c);
}

void tgt_cluster_look_at_resets(struct weft_subsys *s)
{
	if (s->cluster)
		look(s->cluster);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void timed(struct weft_timer *timer)
{
	look(container_of(timer, struct tgt_cluster, reset_timer));
}

void tgt_cluster_resets_init(struct tgt_cluster *c)
{
	weft_list_init(&c->resets);
	c->reset_timer.fn = timed;
}

static void expired(struct weft_timer *timer)
{
	struct tgt_reset *reset = container_of(timer, struct tgt_reset, limit);

	reset->done(reset, -ETIMEDOUT);
}

int tgt_cluster_reset(struct tgt_reset *reset, struct tgt_ctrl *asked,
		      const struct nvme_ccr_cmd *cmd, unsigned limit_ms)
{
	struct tgt_cluster *c = asked->subsys->cluster;
	unsigned under_way = 0;

	for (struct weft_list *link = c->resets.next; link != &c->resets; link = link->next)
		under_way++;
	if (under_way == RESETS_MAX)
		return -EBUSY;
	reset->cluster = c;
	reset->what = (struct reset){
		.state = RESET_ASKED,
		.asker = (uint8_t)c->view.self,
		.cntlid = le16_to_cpu(cmd->icid),
		.ciu = cmd->ciu,
		.cirn = le64_to_cpu(cmd->cirn),
		.session = weft_store_session(c->subsys->store),
	};
	memcpy(reset->what.hostid, asked->hostid, sizeof(reset->what.hostid));
	strcpy(reset->what.hostnqn, asked->hostnqn);
	weft_list_push(&c->resets, &reset->link);
	reset->limit.fn = expired;
	weft_timer_set(c->subsys->target->home, &reset->limit, limit_ms);
	look(c);
	return 0;
}

void tgt_cluster_reset_forget(struct tgt_reset *reset)
{
	weft_list_remove(&reset->link);
	weft_timer_stop(reset->cluster->subsys->target->home, &reset->limit);
}
