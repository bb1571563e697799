/* view.c - the reservation view: may this I/O command run? Every command asks it on its reactor,
 * without a lock.
 *
 *                          holder      registrant   anybody else
 *   write exclusive        r w         r -          r -
 *   exclusive access       r w         - -          - -
 *   … registrants only,
 *   … all registrants      as above, and registrants count as holders
 *
 * (NVMe base 2.0, figure "Command Behavior in the Presence of a Reservation") */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/io/io.h"
#include "target/resv/resv.h"

static int compare_hosts(const void *a, const void *b)
{
	return memcmp(a, b, RESV_HOST_BYTES);
}

int tgt_resv_view_new(const struct resv_state *st, struct resv_view **out)
{
	struct resv_view *view;

	*out = NULL;
	if (!st->rtype)
		return 0;
	view = calloc(1, sizeof(*view) + st->nregs * sizeof(view->hosts[0]));
	if (!view)
		return -ENOMEM;
	view->rtype = st->rtype;
	view->nhosts = st->nregs;
	for (unsigned i = 0; i < st->nregs; i++) {
		memcpy(view->hosts[i], st->regs[i].host, RESV_HOST_BYTES);
		if (st->regs[i].holder)
			memcpy(view->holder, st->regs[i].host, RESV_HOST_BYTES);
	}
	qsort(view->hosts, view->nhosts, RESV_HOST_BYTES, compare_hosts);
	*out = view;
	return 0;
}

static bool is_for_writers(uint8_t rtype)
{
	return rtype == NVME_RESERVATION_RTYPE_WE || rtype == NVME_RESERVATION_RTYPE_WERO ||
	       rtype == NVME_RESERVATION_RTYPE_WEAR;
}

static bool is_for_one(uint8_t rtype)
{
	return rtype == NVME_RESERVATION_RTYPE_WE || rtype == NVME_RESERVATION_RTYPE_EA;
}

/* A command that is not known to leave the data alone counts as a write. So does Flush, as in the
 * figure. */
static bool is_write(uint8_t opcode)
{
	return !(nvme_io_traits(opcode) & NVME_IO_READS);
}

bool tgt_resv_view_allows(const struct resv_view *view, const uint8_t host[RESV_HOST_BYTES],
			  uint8_t opcode)
{
	if (!is_write(opcode) && is_for_writers(view->rtype))
		return true;
	if (is_for_one(view->rtype))
		return !memcmp(view->holder, host, RESV_HOST_BYTES);
	return bsearch(host, view->hosts, view->nhosts, RESV_HOST_BYTES, compare_hosts);
}

uint16_t tgt_resv_check(struct weft_req *req, const struct tgt_ns *ns)
{
	const struct resv_view *view = atomic_load_explicit(&ns->resv, memory_order_acquire);

	if (!view)
		return 0;
	return tgt_resv_view_allows(view, tgt_queue(req)->ctrl->hostid, req->cmd.common.opcode) ?
		       0 :
		       SC_GENERIC(RESERVATION_CONFLICT) | SC_DNR;
}
