/* rules.c - Reservation Register, Acquire and Release, as changes of a state (NVMe base 2.0, 8.19).
 *
 * Nothing here knows of queues, threads or stores: a state, a request, a status.
 * Invariant: where there is a reservation there is a registrant, and it has a holder. */
#include <assert.h>
#include <string.h>

#include "proto/status.h"
#include "target/resv/state.h"

#define CONFLICT (SC_GENERIC(RESERVATION_CONFLICT) | SC_DNR)
#define INVALID  (SC_GENERIC(INVALID_FIELD) | SC_DNR)

/* --- Register --------------------------------------------------------------------------------- */

static bool has_room_for(const struct resv_state *st, const uint8_t *name)
{
	unsigned same = 0;

	for (unsigned i = 0; i < st->nregs; i++)
		same += !memcmp(st->regs[i].name, name, RESV_NAME_BYTES);
	return st->nregs < RESV_REGS_MAX && same < RESV_REGS_OF_NAME;
}

/* There is no status for "too many registrants". */
static uint16_t add_registrant(struct resv_state *st, const struct resv_request *rq)
{
	struct resv_reg *me = &st->regs[st->nregs];

	if (!rq->key)
		return INVALID; /* Preempt takes it for "all" */
	if (!has_room_for(st, rq->name))
		return SC_GENERIC(INTERNAL);
	*me = (struct resv_reg){ .key = rq->key };
	memcpy(me->host, rq->host, RESV_HOST_BYTES);
	memcpy(me->name, rq->name, RESV_NAME_BYTES);
	st->nregs++;
	return 0;
}

static uint16_t register_key(struct resv_state *st, const struct resv_request *rq)
{
	struct resv_reg *me = resv_find_registrant(st, rq->host);

	if (!me)
		return add_registrant(st, rq);
	return me->key == rq->key ? 0 : CONFLICT;
}

static uint16_t unregister_key(struct resv_state *st, const struct resv_request *rq)
{
	struct resv_reg *me = resv_find_registrant(st, rq->host);
	uint8_t rtype = st->rtype;
	bool ends;

	if (!me || (!rq->iekey && me->key != rq->crkey))
		return CONFLICT;
	ends = rtype && (me->holder && !resv_all_registrants(rtype));
	resv_remove_registrant(st, (unsigned)(me - st->regs));
	if (!ends && st->nregs)
		return 0;
	resv_end(st);
	if (resv_registrants_only(rtype))
		resv_notify_released(st, rq->host);
	return 0;
}

/* A host that ignores keys need not have one. Linux (6.12) unregisters by replacing with key 0,
 * which nobody can have. */
static uint16_t replace_key(struct resv_state *st, const struct resv_request *rq)
{
	struct resv_reg *me = resv_find_registrant(st, rq->host);

	if (!me && rq->iekey)
		return add_registrant(st, rq);
	if (!me || (!rq->iekey && me->key != rq->crkey))
		return CONFLICT;
	if (!rq->key)
		return unregister_key(st, rq);
	me->key = rq->key;
	return 0;
}

static bool valid_cptpl(const struct resv_request *rq)
{
	return rq->cptpl == NVME_RESERVATION_CPTPL_NO_CHANGE ||
	       rq->cptpl == NVME_RESERVATION_CPTPL_CLEAR ||
	       (rq->cptpl == NVME_RESERVATION_CPTPL_PERSIST && rq->can_persist);
}

static uint16_t run_register(struct resv_state *st, const struct resv_request *rq)
{
	uint16_t sc;

	if (!valid_cptpl(rq))
		return INVALID;
	switch (rq->action) {
	case NVME_RESERVATION_RREGA_REGISTER_KEY:
		sc = register_key(st, rq);
		break;
	case NVME_RESERVATION_RREGA_UNREGISTER_KEY:
		sc = unregister_key(st, rq);
		break;
	case NVME_RESERVATION_RREGA_REPLACE_KEY:
		sc = replace_key(st, rq);
		break;
	default:
		return INVALID;
	}
	if (!sc)
		st->generation++;
	if (!sc && rq->cptpl)
		st->ptpl = rq->cptpl == NVME_RESERVATION_CPTPL_PERSIST;
	return sc;
}

/* --- Acquire ---------------------------------------------------------------------------------- */

static bool valid_rtype(uint8_t rtype)
{
	return rtype >= NVME_RESERVATION_RTYPE_WE && rtype <= NVME_RESERVATION_RTYPE_EAAR;
}

static uint16_t acquire_reservation(struct resv_state *st, struct resv_reg *me, uint8_t rtype,
				    bool *changed)
{
	*changed = !st->rtype;
	if (st->rtype)
		return st->rtype == rtype && resv_is_holder(st, me) ? 0 : CONFLICT;
	resv_establish(st, me, rtype);
	return 0;
}

/* Unregisters all hosts with @key, or all (@any); the host that asks only if @me_too. */
static unsigned unregister_by_key(struct resv_state *st, const struct resv_request *rq, bool any,
				  bool me_too)
{
	bool abort = rq->action == NVME_RESERVATION_RACQA_PREEMPT_AND_ABORT;
	unsigned n = 0;

	for (unsigned i = st->nregs; i--;) {
		struct resv_reg reg = st->regs[i];
		bool mine = resv_same_host(reg.host, rq->host);

		if ((!any && reg.key != rq->key) || (mine && !me_too))
			continue;
		n++;
		resv_remove_registrant(st, i);
		if (!mine)
			resv_notify(st, reg.host, NVME_RESV_NOTIFY_RNLPT_REGISTRATION_PREEMPTED,
				    abort);
	}
	return n;
}

/* Does this key preempt the reservation, so that it becomes ours? */
static bool is_holders_key(const struct resv_state *st, uint64_t key)
{
	if (resv_all_registrants(st->rtype))
		return !key;
	for (unsigned i = 0; i < st->nregs; i++)
		if (st->regs[i].holder)
			return st->regs[i].key == key;
	return false;
}

static void preempt_holder(struct resv_state *st, const struct resv_request *rq)
{
	uint8_t before = st->rtype;

	unregister_by_key(st, rq, resv_all_registrants(before), false);
	resv_establish(st, resv_find_registrant(st, rq->host), rq->rtype);
	if (before != rq->rtype)
		resv_notify_released(st, rq->host);
}

static uint16_t preempt(struct resv_state *st, const struct resv_request *rq)
{
	if (st->rtype && !resv_all_registrants(st->rtype) && !rq->key)
		return INVALID;
	if (st->rtype && is_holders_key(st, rq->key))
		preempt_holder(st, rq);
	else if (!unregister_by_key(st, rq, false, true))
		return CONFLICT;
	if (!st->nregs)
		resv_end(st);
	st->generation++;
	return 0;
}

static uint16_t run_acquire(struct resv_state *st, const struct resv_request *rq, bool *changed)
{
	struct resv_reg *me = resv_find_registrant(st, rq->host);

	if (rq->iekey || !valid_rtype(rq->rtype) ||
	    rq->action > NVME_RESERVATION_RACQA_PREEMPT_AND_ABORT)
		return INVALID;
	if (!me || me->key != rq->crkey)
		return CONFLICT;
	if (rq->action == NVME_RESERVATION_RACQA_ACQUIRE)
		return acquire_reservation(st, me, rq->rtype, changed);
	return preempt(st, rq);
}

/* --- Release ---------------------------------------------------------------------------------- */

/* A host that does not hold the reservation has nothing to release, and that is no error. */
static uint16_t release_reservation(struct resv_state *st, struct resv_reg *me,
				    const struct resv_request *rq, bool *changed)
{
	uint8_t rtype = st->rtype;

	*changed = resv_is_holder(st, me);
	if (!*changed)
		return 0;
	if (rtype != rq->rtype)
		return INVALID;
	resv_end(st);
	if (resv_registrants_only(rtype) || resv_all_registrants(rtype))
		resv_notify_released(st, rq->host);
	return 0;
}

static uint16_t clear_reservation(struct resv_state *st, const struct resv_request *rq)
{
	resv_notify_others(st, rq->host, NVME_RESV_NOTIFY_RNLPT_RESERVATION_PREEMPTED);
	st->nregs = 0;
	resv_end(st);
	st->generation++;
	return 0;
}

static uint16_t run_release(struct resv_state *st, const struct resv_request *rq, bool *changed)
{
	struct resv_reg *me = resv_find_registrant(st, rq->host);

	if (rq->iekey || rq->action > NVME_RESERVATION_RRELA_CLEAR)
		return INVALID;
	if (!me || me->key != rq->crkey)
		return CONFLICT;
	if (rq->action == NVME_RESERVATION_RRELA_CLEAR)
		return clear_reservation(st, rq);
	return release_reservation(st, me, rq, changed);
}

/* --- dispatch --------------------------------------------------------------------------------- */

static uint16_t run_persist(struct resv_state *st, const struct resv_request *rq, bool *changed)
{
	if (rq->ptpl && !rq->can_persist)
		return INVALID;
	*changed = st->ptpl != rq->ptpl;
	st->ptpl = rq->ptpl;
	return 0;
}

static uint16_t run_command(struct resv_state *st, const struct resv_request *rq, bool *changed)
{
	switch (rq->kind) {
	case RESV_REGISTER:
		return run_register(st, rq);
	case RESV_ACQUIRE:
		return run_acquire(st, rq, changed);
	case RESV_RELEASE:
		return run_release(st, rq, changed);
	case RESV_PERSIST:
		return run_persist(st, rq, changed);
	}
	return INVALID;
}

/* The invariant. */
static bool has_holder_if_reserved(const struct resv_state *st)
{
	unsigned holders = 0;

	for (unsigned i = 0; i < st->nregs; i++)
		holders += st->regs[i].holder;
	if (!st->rtype)
		return !holders;
	return resv_all_registrants(st->rtype) ? st->nregs : holders == 1;
}

uint16_t resv_execute(struct resv_state *st, const struct resv_request *rq, bool *changed)
{
	bool sound = has_holder_if_reserved(st); /* another member may have written it */
	uint16_t sc;

	assert(resv_has_notice_room(st));
	*changed = true;
	sc = run_command(st, rq, changed);
	assert(!sound || has_holder_if_reserved(st));
	return sc;
}
