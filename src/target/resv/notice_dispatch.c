/* notice_dispatch.c - bring a reservation's new notices to the controllers of their hosts.
 *
 *   notices ─▶ by host ─▶ controllers, a bucket at a time (apply.c)
 *       ─▶ log and event (notification_log.c)
 *
 * There may be 512 hosts and tens of thousands of controllers: notices are sorted by host, and
 * controllers are visited one hash bucket of their ids at a time. Controllers come and go
 * meanwhile. One that connects behind the cursor came after the change and needs no notice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/resv/resv.h"

struct resv_dispatch_item {
	struct resv_notice notice;
	unsigned order;
};

static int compare_items(const void *a, const void *b)
{
	const struct resv_dispatch_item *one = a, *other = b;
	int diff = memcmp(one->notice.host, other->notice.host, RESV_HOST_BYTES);

	return diff ? diff : (one->order > other->order) - (one->order < other->order);
}

int tgt_resv_dispatch_begin(struct resv_dispatch *dispatch, const struct tgt_ns *ns,
			    const struct resv_notice *notices, unsigned n)
{
	struct resv_dispatch_item *news = n ? calloc(n, sizeof(*news)) : NULL;

	assert(!dispatch->items && !dispatch->n);
	if (n && !news)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		news[i] = (struct resv_dispatch_item){ notices[i], i };
	if (n)
		qsort(news, n, sizeof(*news), compare_items);
	*dispatch = (struct resv_dispatch){ ns->nsid, ns->serial, news, n, 0 };
	return 0;
}

void tgt_resv_dispatch_end(struct resv_dispatch *dispatch)
{
	free(take_ptr(&dispatch->items));
	dispatch->n = 0;
}

static unsigned first_for_host(const struct resv_dispatch *dispatch, const uint8_t *host)
{
	unsigned first = 0, end = dispatch->n;

	while (first < end) {
		unsigned middle = first + (end - first) / 2;

		if (memcmp(dispatch->items[middle].notice.host, host, RESV_HOST_BYTES) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

unsigned tgt_resv_dispatch_to_ctrl(const struct resv_dispatch *dispatch, struct tgt_ctrl *ctrl)
{
	unsigned first = first_for_host(dispatch, ctrl->hostid), i;

	for (i = first; i < dispatch->n; i++) {
		const struct resv_notice *notice = &dispatch->items[i].notice;

		if (!resv_same_host(notice->host, ctrl->hostid))
			break;
		tgt_resv_notify(ctrl, dispatch->nsid, notice->type);
	}
	return i - first;
}
