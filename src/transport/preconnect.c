/* preconnect.c - see preconnect.h. */
#include "transport/preconnect.h"

#include <assert.h>

#include "base/count.h"
#include "base/log.h"
#include "proto/uri.h"
#include "transport/transport.h"

void weft_preconnect_init(struct weft_preconnect *preconnect, uint32_t max)
{
	weft_list_init(&preconnect->qpairs);
	weft_addr_counts_init(&preconnect->counts);
	preconnect->max = max;
}

static struct weft_qpair *oldest_of_busiest(struct weft_preconnect *preconnect)
{
	uint32_t most = weft_addr_counts_max(&preconnect->counts);
	struct weft_qpair *qp;

	weft_list_for_each(qp, &preconnect->qpairs, preconnect)
		if (*weft_addr_counts_at(&preconnect->counts, &qp->peer) == most)
			return qp;
	return NULL;
}

static void displace_oldest(struct weft_preconnect *preconnect)
{
	struct weft_qpair *qp = oldest_of_busiest(preconnect);
	char peer[WEFT_URI_MAX];

	weft_uri_format(qp->transport->trtype, &qp->peer, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_WARN, "%u connections without Connect: closing one, of %s",
		      preconnect->max, peer);
	atomic_fetch_add(&preconnect->displaced, 1);
	weft_qpair_close(qp, "another connection needs its place, and it sent no Connect");
}

void weft_preconnect_add(struct weft_preconnect *preconnect, struct weft_qpair *qp)
{
	assert_on_group(qp->group);
	assert(weft_list_empty(&qp->preconnect) && !qp->sqsize);
	if (atomic_load(&preconnect->now) >= preconnect->max)
		displace_oldest(preconnect);
	weft_list_push(&preconnect->qpairs, &qp->preconnect);
	++*weft_addr_counts_at(&preconnect->counts, &qp->peer);
	atomic_fetch_add(&preconnect->now, 1);
}

void weft_preconnect_remove(struct weft_preconnect *preconnect, struct weft_qpair *qp)
{
	if (weft_list_empty(&qp->preconnect))
		return;
	weft_list_remove(&qp->preconnect);
	assert_on_group(qp->group);
	weft_count_down(*weft_addr_counts_at(&preconnect->counts, &qp->peer));
	atomic_fetch_sub(&preconnect->now, 1);
}
