/* tell.c - who is told what of a namespace's reservation.
 *
 * One change may be news to 512 hosts, and there may be tens of thousands of controllers: what is new
 * is sorted by host, so that a controller finds what is for its own.
 *
 *   notices ─▶ by host ─▶ controllers, a bucket at a time (apply.c) ─▶ log and event (notify.c)
 *
 * Controllers come and go meanwhile; the buckets that have them by their id stay. Who connects when
 * its bucket is done has come after the change. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/resv/resv.h"

struct resv_news {
	struct resv_notice notice;
	unsigned order;
};

static int compare_news(const void *a, const void *b)
{
	const struct resv_news *one = a, *other = b;
	int diff = memcmp(one->notice.host, other->notice.host, RESV_HOST_BYTES);

	return diff ? diff : (one->order > other->order) - (one->order < other->order);
}

int tgt_resv_tell_begin(struct resv_telling *telling, const struct tgt_ns *ns,
			const struct resv_notice *notices, unsigned n)
{
	struct resv_news *news = n ? calloc(n, sizeof(*news)) : NULL;

	if (n && !news)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		news[i] = (struct resv_news){ notices[i], i };
	if (n)
		qsort(news, n, sizeof(*news), compare_news);
	*telling = (struct resv_telling){ ns->nsid, ns->serial, news, n, 0 };
	return 0;
}

void tgt_resv_tell_end(struct resv_telling *telling)
{
	free(take_ptr(&telling->news));
	telling->n = 0;
}

static unsigned first_of(const struct resv_telling *telling, const uint8_t *host)
{
	unsigned first = 0, end = telling->n;

	while (first < end) {
		unsigned middle = first + (end - first) / 2;

		if (memcmp(telling->news[middle].notice.host, host, RESV_HOST_BYTES) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

unsigned tgt_resv_tell(const struct resv_telling *telling, struct tgt_ctrl *ctrl)
{
	unsigned first = first_of(telling, ctrl->hostid), i;

	for (i = first; i < telling->n; i++) {
		const struct resv_notice *notice = &telling->news[i].notice;

		if (!resv_same_host(notice->host, ctrl->hostid))
			break;
		tgt_resv_notify(ctrl, telling->nsid, notice->type);
	}
	return i - first;
}
