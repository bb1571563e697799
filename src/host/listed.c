/* listed.c - what discovery services list becomes the paths that there are.
 *
 *   listed, no such path ──────────────────────────────────▶ it is added, as if it had been given
 *   a path came by a list, is in none ─ a listed one lives ─▶ it is drained and removed
 *
 * So a service that is lost, or has forgotten everything, takes no path away: what it said last
 * goes on to count, and an empty log lists no path that could live. Paths that were given are not
 * touched. */
#include <errno.h>

#include "host/guide.h"

enum { UNREACHED = HOST_REFERRAL_DEPTH_MAX + 1 };

static bool counts(const struct host_guide *guide)
{
	return guide->answered && !guide->ctrl->stopping;
}

/* --- referrals -------------------------------------------------------------------------------- */

static void refer(struct host_guide *from, const struct host_spot *spot)
{
	struct host_guide *guide;

	weft_list_for_each(guide, &from->owner->guides, link) {
		if (!host_guide_leads_to(guide, spot))
			continue;
		if (guide->depth == UNREACHED)
			guide->depth = from->depth + 1;
		return;
	}
	host_guide_refer(from, spot);
}

/* From those that were given, level by level: those that only refer to each other are not
 * reached. */
static void follow_referrals(struct weft_ctrl *ctrl)
{
	struct host_guide *guide;

	weft_list_for_each(guide, &ctrl->guides, link)
		guide->depth = guide->depth ? UNREACHED : 0;
	for (unsigned depth = 0; depth < HOST_REFERRAL_DEPTH_MAX; depth++) {
		weft_list_for_each(guide, &ctrl->guides, link) {
			if (guide->depth != depth || !counts(guide))
				continue;
			for (unsigned i = 0; i < guide->listing.nreferrals; i++)
				refer(guide, &guide->listing.referrals[i]);
		}
	}
	weft_list_for_each(guide, &ctrl->guides, link) {
		if (guide->depth == UNREACHED && !guide->ctrl->stopping)
			host_guide_drop(guide);
	}
}

/* --- paths ------------------------------------------------------------------------------------ */

static bool leads_to(const struct host_path *path, const struct host_spot *spot)
{
	return path->config.transport == spot->transport &&
	       weft_addr_equal(&path->config.addr, &spot->addr);
}

static struct host_path *find_path(const struct weft_ctrl *ctrl, const struct host_spot *spot)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && leads_to(ctrl->paths[i], spot))
			return ctrl->paths[i];
	return NULL;
}

static void add_path(struct host_guide *guide, const struct host_spot *spot)
{
	const struct host_path *from = host_guide_path(guide);
	struct host_path *path;

	if (host_path_create(guide->owner, &guide->wanted, &path, NULL) < 0)
		return;
	host_path_lead_to(path, spot->transport, &spot->addr);
	host_path_address(from, path->from, sizeof(path->from));
	if (host_paths_insert(path) == 0) {
		host_path_start(path);
		return;
	}
	if (guide->fresh)
		host_event_push(guide->owner, WEFT_EVENT_PATH, WEFT_DEAD, 0,
				"%s: listed and not used, there are %d paths", path->pub.address,
				HOST_PATHS_MAX);
	host_path_free(path);
}

/* A path that is dead gets another chance when a service says anew that it is there. */
static void add_listed(struct host_guide *guide)
{
	for (unsigned i = 0; i < guide->listing.nplaces; i++) {
		struct host_path *path = find_path(guide->owner, &guide->listing.places[i]);

		if (!path)
			add_path(guide, &guide->listing.places[i]);
		else if (guide->fresh && path->from[0] && path->state == WEFT_DEAD &&
			 !path->leaving)
			host_path_leave(path); /* and comes back when it is gone */
	}
	guide->fresh = false;
}

static bool is_listed(const struct host_path *path)
{
	struct host_guide *guide;

	weft_list_for_each(guide, &path->ctrl->guides, link) {
		if (!counts(guide))
			continue;
		for (unsigned i = 0; i < guide->listing.nplaces; i++)
			if (leads_to(path, &guide->listing.places[i]))
				return true;
	}
	return false;
}

/* The program may be about to remove one that was given. */
static bool is_leaving(const struct host_path *path)
{
	bool leaving;

	pthread_mutex_lock(&path->ctrl->lock);
	leaving = path->leaving;
	pthread_mutex_unlock(&path->ctrl->lock);
	return leaving;
}

static bool a_listed_one_lives(const struct weft_ctrl *ctrl)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_path *path = ctrl->paths[i];

		if (path && path->state == WEFT_LIVE && !is_leaving(path) && is_listed(path))
			return true;
	}
	return false;
}

static void remove_unlisted(struct weft_ctrl *ctrl)
{
	if (!a_listed_one_lives(ctrl))
		return;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = ctrl->paths[i];

		if (!path || !path->from[0] || path->leaving || is_listed(path))
			continue;
		host_event_push(ctrl, WEFT_EVENT_PATH, path->state, 0,
				"%s: is not listed any more, and removed", path->pub.address);
		host_path_leave(path);
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Under ctrl->lock, for who waits in weft_connect(). */
static void note_answer(struct host_guide *guide)
{
	guide->tried = true;
	guide->why.text[0] = '\0';
	guide->rc = guide->listing.nplaces ?
			    0 :
			    weft_fail(&guide->why, -ENOENT, "the discovery log does not list %s",
				      guide->wanted.subnqn);
}

static void note_answers(struct weft_ctrl *ctrl)
{
	struct host_guide *guide;

	pthread_mutex_lock(&ctrl->lock);
	weft_list_for_each(guide, &ctrl->guides, link) {
		if (guide->answered)
			note_answer(guide);
	}
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
}

/* Dead is final: then nothing is added any more. */
void host_review(struct weft_task *task)
{
	struct weft_ctrl *ctrl = container_of(task, struct weft_ctrl, review);
	struct host_guide *guide;

	if (ctrl->stopping || ctrl->pub.state == WEFT_DEAD)
		return;
	follow_referrals(ctrl);
	weft_list_for_each(guide, &ctrl->guides, link) {
		if (counts(guide))
			add_listed(guide);
	}
	remove_unlisted(ctrl);
	note_answers(ctrl);
}

void host_review_soon(struct weft_ctrl *ctrl)
{
	if (!weft_list_empty(&ctrl->guides))
		weft_reactor_defer(ctrl->reactor, &ctrl->review);
}
