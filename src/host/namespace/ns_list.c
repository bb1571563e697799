/* ns_list.c - which namespaces there are. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "host/internal.h"

enum { NSIDS_PER_PAGE = HOST_PAGE / 4, NSIDS_MAX = 1 << 20 };

/* The ids above @after; returns how many are in @page, which must ascend. */
static int read_active_ns_page(struct weft_ctrl *ctrl, uint32_t after, __le32 *page,
			       struct weft_err *err)
{
	int n, rc = weft_identify(ctrl, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, after, page, err);

	if (rc < 0)
		return rc;
	for (n = 0; n < NSIDS_PER_PAGE && page[n]; n++) {
		if (le32_to_cpu(page[n]) <= after)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces is out of order");
		after = le32_to_cpu(page[n]);
	}
	return n;
}

int weft_ns_list(struct weft_ctrl *ctrl, uint32_t *nsids, unsigned max, struct weft_err *err)
{
	_cleanup_(weft_freep) __le32 *page = malloc(HOST_PAGE);
	unsigned total = 0;
	uint32_t after = 0;
	int n;

	if (!page)
		return weft_fail(err, -ENOMEM, "no memory for a list of namespaces");
	do {
		n = read_active_ns_page(ctrl, after, page, err);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++, total++) {
			after = le32_to_cpu(page[i]);
			if (total < max)
				nsids[total] = after;
		}
		if (total > NSIDS_MAX)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces does not end");
	} while (n == NSIDS_PER_PAGE && after < NVME_NSID_BROADCAST - 1);
	return (int)total;
}
