/* ns_list.c - which namespaces there are: those of every live path. The controllers behind two
 * paths may show this host different ones.
 *
 *   every path has been tried ─▶ the list of each live path ─▶ sorted, each id once */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/internal.h"

enum { NSIDS_PER_PAGE = HOST_PAGE / 4, NSIDS_MAX = 1 << 20 };

struct nsids {
	uint32_t *ids;
	size_t count, room;
};

static void free_nsids(struct nsids *all)
{
	free(all->ids);
}

static int add_nsid(struct nsids *all, uint32_t nsid, struct weft_err *err)
{
	uint32_t *ids = all->ids;

	if (all->count == all->room) {
		all->room = all->room ? 2 * all->room : NSIDS_PER_PAGE;
		ids = realloc(ids, all->room * sizeof(*ids));
	}
	if (!ids)
		return weft_fail(err, -ENOMEM, "no memory for a list of namespaces");
	all->ids = ids;
	all->ids[all->count++] = nsid;
	return 0;
}

/* --- of one controller ------------------------------------------------------------------------ */

/* @path: its id; NULL: any. */
static int identify_active(struct weft_ctrl *ctrl, const unsigned *path, uint32_t after,
			   __le32 *page, struct weft_err *err)
{
	uint8_t cns = NVME_IDENTIFY_CNS_NS_ACTIVE_LIST;

	return path ? host_identify_through(ctrl, *path, cns, after, page, err) :
		      weft_identify(ctrl, cns, after, page, err);
}

/* The ids above *@after; returns how many are in @page, which must ascend. */
static int read_active_ns_page(struct weft_ctrl *ctrl, const unsigned *path, uint32_t *after,
			       __le32 *page, struct weft_err *err)
{
	int n, rc = identify_active(ctrl, path, *after, page, err);

	if (rc < 0)
		return rc;
	for (n = 0; n < NSIDS_PER_PAGE && page[n]; n++) {
		if (le32_to_cpu(page[n]) <= *after)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces is out of order");
		*after = le32_to_cpu(page[n]);
	}
	return n;
}

static int read_active_ns(struct weft_ctrl *ctrl, const unsigned *path, struct nsids *all,
			  struct weft_err *err)
{
	_cleanup_(weft_freep) __le32 *page = malloc(HOST_PAGE);
	size_t most = all->count + NSIDS_MAX;
	uint32_t after = 0;
	int n, rc = 0;

	if (!page)
		return weft_fail(err, -ENOMEM, "no memory for a list of namespaces");
	do {
		n = read_active_ns_page(ctrl, path, &after, page, err);
		for (int i = 0; rc == 0 && i < n; i++)
			rc = add_nsid(all, le32_to_cpu(page[i]), err);
		if (n < 0 || rc < 0)
			return n < 0 ? n : rc;
		if (all->count > most)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces does not end");
	} while (n == NSIDS_PER_PAGE && after < NVME_NSID_BROADCAST - 1);
	return 0;
}

/* --- of all ----------------------------------------------------------------------------------- */

/* Returns how many paths are live. */
static unsigned await_paths(struct weft_ctrl *ctrl, unsigned ids[HOST_PATHS_MAX])
{
	struct host_path *paths[HOST_PATHS_MAX];
	unsigned n, live = 0;

	weft_mutex_lock(&ctrl->lock);
	while (ctrl->pub.state != WEFT_DEAD && host_ctrl_has_untried_path(ctrl))
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	n = host_paths_by_id(ctrl, paths);
	for (unsigned i = 0; i < n; i++)
		if (paths[i]->pub.state == WEFT_LIVE)
			ids[live++] = paths[i]->id;
	weft_mutex_unlock(&ctrl->lock);
	return live;
}

static int compare_nsids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void make_unique(struct nsids *all)
{
	size_t kept = 0;

	if (all->count)
		qsort(all->ids, all->count, sizeof(*all->ids), compare_nsids);
	for (size_t i = 0; i < all->count; i++)
		if (!kept || all->ids[i] != all->ids[kept - 1])
			all->ids[kept++] = all->ids[i];
	all->count = kept;
}

/* A path that is lost meanwhile, or does not tell, leaves it to the others. Where none tells, or
 * only one is live, it is as with a single path: the first that lives again is asked. */
static int read_all_paths(struct weft_ctrl *ctrl, struct nsids *all, struct weft_err *err)
{
	unsigned paths[HOST_PATHS_MAX], n = await_paths(ctrl, paths), answered = 0;

	for (unsigned i = 0; n > 1 && i < n; i++) {
		size_t before = all->count;

		if (read_active_ns(ctrl, &paths[i], all, NULL) == 0)
			answered++;
		else
			all->count = before;
	}
	return answered ? 0 : read_active_ns(ctrl, NULL, all, err);
}

int weft_ns_list(struct weft_ctrl *ctrl, uint32_t *nsids, unsigned max, struct weft_err *err)
{
	_cleanup_(free_nsids) struct nsids all = { NULL };
	int rc = read_all_paths(ctrl, &all, err);

	if (rc < 0)
		return rc;
	make_unique(&all);
	if (max && all.count)
		memcpy(nsids, all.ids, (all.count < max ? all.count : max) * sizeof(*nsids));
	return (int)all.count;
}
