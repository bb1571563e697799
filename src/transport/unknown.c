#include "transport/unknown.h"

#include "base/log.h"
#include "proto/uri.h"
#include "transport/transport.h"

void weft_unknown_init(struct weft_unknown *unknown, uint32_t max)
{
	weft_list_init(&unknown->qpairs);
	weft_addr_counts_init(&unknown->counts);
	unknown->max = max;
}

static struct weft_qpair *oldest_of_busiest(struct weft_unknown *unknown)
{
	uint32_t most = weft_addr_counts_most(&unknown->counts);
	struct weft_qpair *qp;

	weft_list_for_each(qp, &unknown->qpairs, unknown)
		if (*weft_addr_counter(&unknown->counts, &qp->peer) == most)
			return qp;
	return NULL;
}

static void make_room(struct weft_unknown *unknown)
{
	struct weft_qpair *qp = oldest_of_busiest(unknown);
	char peer[WEFT_URI_MAX];

	weft_uri_format(qp->transport->trtype, &qp->peer, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_WARN, "%u connections without Connect: closing one, of %s",
		      unknown->max, peer);
	atomic_fetch_add(&unknown->displaced, 1);
	weft_qpair_close(qp, "another connection needs its place, and it sent no Connect");
}

void weft_unknown_add(struct weft_unknown *unknown, struct weft_qpair *qp)
{
	if (atomic_load(&unknown->now) >= unknown->max)
		make_room(unknown);
	weft_list_push(&unknown->qpairs, &qp->unknown);
	++*weft_addr_counter(&unknown->counts, &qp->peer);
	atomic_fetch_add(&unknown->now, 1);
}

void weft_unknown_remove(struct weft_unknown *unknown, struct weft_qpair *qp)
{
	if (weft_list_empty(&qp->unknown))
		return;
	weft_list_remove(&qp->unknown);
	--*weft_addr_counter(&unknown->counts, &qp->peer);
	atomic_fetch_sub(&unknown->now, 1);
}
