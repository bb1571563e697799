/* slot.c - a piece on its way, step by step.
 *
 *   idle ──take──▶ get ──▶ put ─┐
 *     │            (verify:     │ one step for each stretch of data or of zeroes
 *     │             compare)    │
 *     ◀─────────────────────────┘
 *
 * A step is done at once, started, or has to wait; finishing one decides the next. */
#include <errno.h>
#include <string.h>

#include "cli/cp/internal.h"

#define GRAIN (64u << 10)

/* --- the end of a piece ----------------------------------------------------------------------- */

static void piece_done(struct cp_slot *slot)
{
	slot->state = SLOT_IDLE;
	atomic_fetch_add(&slot->lane->cp->done, slot->length);
}

static void piece_fail(struct cp_slot *slot, int rc)
{
	slot->state = SLOT_IDLE;
	weft_cp_piece_failed(slot->lane->cp, slot, rc);
}

/* --- idle: take a piece ----------------------------------------------------------------------- */

static int start_idle(struct cp_slot *slot)
{
	return weft_cp_take(slot->lane->cp, slot) ? CP_DONE : CP_LATER;
}

static void begin_put(struct cp_slot *slot)
{
	struct cp *cp = slot->lane->cp;

	slot->state = SLOT_PUT;
	slot->at = 0;
	slot->put_length = weft_cp_padded(cp, slot->length);
	if (!slot->hole)
		memset(slot->buf + slot->length, 0, slot->put_length - slot->length);
	if (cp->ask->verify || cp->to->ops->lost)
		weft_cp_keep_sum(cp, slot);
}

static void finish_idle(struct cp_slot *slot)
{
	slot->at = 0;
	slot->err.text[0] = '\0';
	if (slot->hole)
		begin_put(slot);
	else
		slot->state = SLOT_GET;
}

/* --- get -------------------------------------------------------------------------------------- */

static int start_get(struct cp_slot *slot)
{
	struct cp *cp = slot->lane->cp;
	struct cp_end *from = cp->verifying ? cp->to : cp->from;

	return atomic_load(&cp->stop) ? -ECANCELED : from->ops->get(from, slot);
}

static void finish_get(struct cp_slot *slot)
{
	struct cp *cp = slot->lane->cp;

	if (cp->verifying) {
		weft_cp_check_sum(cp, slot);
		piece_done(slot);
	} else if (!slot->length) {
		piece_done(slot); /* the stream had ended */
	} else {
		begin_put(slot);
	}
}

/* --- put -------------------------------------------------------------------------------------- */

static void choose_run(struct cp_slot *slot)
{
	const struct cp *cp = slot->lane->cp;
	size_t grain = cp->to->block > GRAIN ? cp->to->block : GRAIN;

	slot->run = slot->put_length - slot->at;
	slot->run_zero = slot->hole;
	if (!slot->hole && cp->sparse)
		slot->run = weft_zero_run(slot->buf + slot->at, slot->run, grain, &slot->run_zero);
}

static int start_put(struct cp_slot *slot)
{
	struct cp_end *to = slot->lane->cp->to;

	choose_run(slot);
	return slot->run_zero ? to->ops->zero(to, slot) : to->ops->put(to, slot);
}

static void finish_put(struct cp_slot *slot)
{
	if (slot->run_zero)
		atomic_fetch_add(&slot->lane->cp->zeroed, slot->run);
	slot->at += slot->run;
	if (slot->at == slot->put_length)
		piece_done(slot);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
	int (*start)(struct cp_slot *slot);
	void (*finish)(struct cp_slot *slot);
} states[] = {
	[SLOT_IDLE] = { start_idle, finish_idle },
	[SLOT_GET] = { start_get, finish_get },
	[SLOT_PUT] = { start_put, finish_put },
};

static void finish_step(struct cp_slot *slot, int rc)
{
	if (rc < 0)
		piece_fail(slot, rc);
	else
		states[slot->state].finish(slot);
}

void weft_cp_step_done(struct cp_slot *slot, int rc)
{
	slot->started = false;
	finish_step(slot, rc);
}

/* Until it has to wait. Whether it got anywhere. */
bool weft_cp_slot_run(struct cp_slot *slot)
{
	bool moved = false;

	for (;;) {
		int rc = states[slot->state].start(slot);

		if (rc == CP_STARTED) {
			slot->started = true;
			return true;
		}
		if (rc == CP_LATER) {
			/* Who is told to stop does not wait for what may never come. */
			if (slot->state == SLOT_IDLE || !atomic_load(&slot->lane->cp->stop))
				return moved;
			rc = -ECANCELED;
		}
		moved = true;
		finish_step(slot, rc);
	}
}
