/* state.c - the parts of a reservation's state, and the small changes that rules are made of. */
#include "target/resv/state.h"

#include <assert.h>
#include <string.h>

#include "base/count.h"
#include "proto/nvme.h"

bool resv_same_host(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, RESV_HOST_BYTES);
}

struct resv_reg *resv_find_registrant(struct resv_state *st, const uint8_t *host)
{
	for (unsigned i = 0; i < st->nregs; i++)
		if (resv_same_host(st->regs[i].host, host))
			return &st->regs[i];
	return NULL;
}

bool resv_all_registrants(uint8_t rtype)
{
	return rtype == NVME_RESERVATION_RTYPE_WEAR || rtype == NVME_RESERVATION_RTYPE_EAAR;
}

bool resv_registrants_only(uint8_t rtype)
{
	return rtype == NVME_RESERVATION_RTYPE_WERO || rtype == NVME_RESERVATION_RTYPE_EARO;
}

bool resv_is_holder(const struct resv_state *st, const struct resv_reg *reg)
{
	return st->rtype && (reg->holder || resv_all_registrants(st->rtype));
}

void resv_end(struct resv_state *st)
{
	st->rtype = 0;
	for (unsigned i = 0; i < st->nregs; i++)
		st->regs[i].holder = false;
}

void resv_establish(struct resv_state *st, struct resv_reg *holder, uint8_t rtype)
{
	assert(rtype && holder >= st->regs && holder < st->regs + st->nregs);
	resv_end(st);
	st->rtype = rtype;
	holder->holder = true;
}

void resv_remove_registrant(struct resv_state *st, unsigned index)
{
	assert(index < st->nregs);
	weft_count_down(st->nregs);
	memmove(&st->regs[index], &st->regs[index + 1], (st->nregs - index) * sizeof(st->regs[0]));
}

/* --- notices ---------------------------------------------------------------------------------- */

bool resv_has_notice_room(const struct resv_state *st)
{
	return st->nnotices + 2 * st->nregs <= RESV_NOTICES_MAX;
}

void resv_notify(struct resv_state *st, const uint8_t *host, uint8_t type, bool abort)
{
	struct resv_notice *notice = &st->notices[st->nnotices++];

	assert(st->nnotices <= RESV_NOTICES_MAX);
	memcpy(notice->host, host, RESV_HOST_BYTES);
	notice->type = type;
	notice->abort = abort;
	st->noticed++;
}

void resv_notify_others(struct resv_state *st, const uint8_t *host, uint8_t type)
{
	for (unsigned i = 0; i < st->nregs; i++)
		if (!resv_same_host(st->regs[i].host, host))
			resv_notify(st, st->regs[i].host, type, false);
}

void resv_notify_released(struct resv_state *st, const uint8_t *by)
{
	resv_notify_others(st, by, NVME_RESV_NOTIFY_RNLPT_RESERVATION_RELEASED);
}
