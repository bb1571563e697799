/* command.c - the commands that change a reservation: Register, Acquire, Release.
 *
 *   reactor: its data ─▶ home: rules on the state as it is ─▶ commit ─▶ settled ─▶ reply
 *                          ▲                                    │
 *                          └──── somebody else was faster ──────┘
 *
 * A change is answered when it binds everywhere, and so is a command that found nothing to change:
 * what it relies on may be on its way to others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "target/io/io.h"
#include "target/resv/resv.h"

struct change {
	struct weft_list link; /* subsys->changes */
	struct weft_req *req;  /* NULL: its queue is gone, nobody waits for the answer */
	struct weft_subsys *subsys;
	struct resv_request rq;
	char key[TGT_RESV_KEY];
	struct weft_store_write write;
	struct weft_txn txn;
	struct weft_store_wait wait;
	bool committing;
	bool full; /* of notices that not all have seen: to be run again when they have */
	struct resv_state st;
	char value[WEFT_STORE_VALUE_MAX];
};

static void run(struct change *change);

/* --- on home ---------------------------------------------------------------------------------- */

static void end(struct change *change, uint16_t sc)
{
	weft_list_remove(&change->link);
	if (change->req)
		tgt_home_reply(change->req, sc);
	free(change);
}

static void settled(struct weft_store_wait *wait, int rc)
{
	struct change *change = container_of(wait, struct change, wait);

	if (!rc && change->full)
		run(change);
	else if (rc == -EOWNERDEAD)
		end(change, SC_PATH(ANA_PERSISTENT_LOSS));
	else
		end(change, rc < 0 ? SC_GENERIC(ABORT_QUEUE) : 0);
}

static void wait_for(struct change *change, uint64_t revision)
{
	change->wait = (struct weft_store_wait){ .revision = revision, .done = settled };
	weft_store_settle(change->subsys->store, &change->wait);
}

static void committed(struct weft_txn *txn, int rc)
{
	struct change *change = container_of(txn, struct change, txn);

	change->committing = false;
	if (!change->req) {
		end(change, 0);
	} else if (rc == -ESTALE) {
		run(change);
	} else if (rc == -EOWNERDEAD) {
		end(change, SC_PATH(ANA_PERSISTENT_LOSS));
	} else if (rc < 0) {
		weft_error("%s: a reservation cannot be changed: %s", change->subsys->nqn,
			   strerror(-rc));
		end(change, SC_GENERIC(INTERNAL));
	} else {
		wait_for(change, txn->revision);
	}
}

/* Notices that every member has seen have done their work. */
static void drop_seen(struct change *change, const struct weft_record *record)
{
	if (record && record->version <= weft_store_settled(change->subsys->store))
		change->st.nnotices = 0;
}

/* There may have been a record, whose notices somebody has counted: every revision had its number
 * of them at most, so that none is counted twice. */
static void count_on(struct change *change, const struct weft_record *record)
{
	if (!record)
		change->st.noticed = weft_store_revision(change->subsys->store) * RESV_NOTICES_MAX;
}

static void commit(struct change *change, uint64_t version)
{
	struct weft_store *store = change->subsys->store;

	resv_record_encode(&change->st, weft_store_session(store), change->value);
	change->write = (struct weft_store_write){
		.key = change->key,
		.version = version,
		.value = change->value,
		.len = (uint32_t)resv_record_size(&change->st),
	};
	change->txn = (struct weft_txn){ &change->write, 1, committed };
	change->committing = true;
	weft_store_commit(store, &change->txn);
}

static void run(struct change *change)
{
	const struct weft_record *record;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_of(change->req, &ns);
	bool changed;

	if (!sc && tgt_resv_state(ns, &change->st, &record) < 0)
		sc = SC_GENERIC(INTERNAL);
	if (sc) {
		end(change, sc);
		return;
	}
	drop_seen(change, record);
	count_on(change, record);
	change->full = !resv_has_room(&change->st);
	if (change->full) {
		wait_for(change, record->version);
		return;
	}
	tgt_resv_key(ns, change->key);
	sc = resv_run(&change->st, &change->rq, &changed);
	if (sc)
		end(change, sc);
	else if (changed)
		commit(change, record ? record->version : 0);
	else
		wait_for(change, record ? record->version : 0);
}

static void begin(struct weft_req *req, const struct resv_request *rq)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	struct change *change = malloc(sizeof(*change));

	if (!change) {
		tgt_home_reply(req, SC_GENERIC(INTERNAL));
		return;
	}
	change->req = req;
	change->subsys = ctrl->subsys;
	change->committing = false;
	change->rq = *rq;
	memcpy(change->rq.host, ctrl->hostid, RESV_HOST_BYTES);
	change->rq.can_persist = weft_store_persistent(ctrl->subsys->store);
	weft_list_push(&ctrl->subsys->changes, &change->link);
	run(change);
}

void tgt_resv_set_persist(struct weft_req *req, bool ptpl)
{
	const struct resv_request rq = { .kind = RESV_PERSIST, .ptpl = ptpl };

	begin(req, &rq);
}

void tgt_resv_give_back(struct weft_subsys *s, struct weft_qpair *qp)
{
	struct change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &s->changes, link) {
		if (!change->req || change->req->qp != qp)
			continue;
		tgt_home_reply(take_ptr(&change->req), SC_GENERIC(ABORT_QUEUE));
		if (change->committing)
			continue; /* it ends when the store gives it back */
		weft_store_forget(&change->wait);
		end(change, 0);
	}
}

/* --- Register, Acquire, Release --------------------------------------------------------------- */

static const struct command {
	uint8_t opcode;
	enum resv_kind kind;
	uint32_t length;
} commands[] = {
	{ nvme_cmd_resv_register, RESV_REGISTER, 16 },
	{ nvme_cmd_resv_acquire, RESV_ACQUIRE, 16 },
	{ nvme_cmd_resv_release, RESV_RELEASE, 8 },
};

static const struct command *command_of(const struct weft_req *req)
{
	const struct command *command = commands;

	while (command->opcode != req->cmd.common.opcode)
		command++;
	return command;
}

static void change_at_home(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	const struct command *command = command_of(req);
	uint32_t cdw10 = le32_to_cpu(req->cmd.common.cdw10);
	__le64 keys[2] = { 0 };
	struct resv_request rq = {
		.kind = command->kind,
		.action = cdw10 & 7,
		.iekey = cdw10 >> 3 & 1,
		.rtype = cdw10 >> 8 & 0xff,
		.cptpl = cdw10 >> 30,
	};

	memcpy(keys, req->data, command->length);
	rq.crkey = le64_to_cpu(keys[0]);
	rq.key = le64_to_cpu(keys[1]);
	begin(req, &rq);
}

static void fetched(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_post_home(req, change_at_home);
}

void tgt_resv_change(struct weft_req *req)
{
	uint32_t length = command_of(req)->length;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_of(req, &ns);

	if (!sc)
		sc = weft_req_check_sgl(req, length);
	if (sc)
		tgt_io_finish(req, sc);
	else
		weft_req_fetch(req, length, fetched);
}
