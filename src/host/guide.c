/* guide.c - the connection to a discovery service that tells of paths, and its end.
 *
 *   given, or referred to ─▶ connected ─▶ its log is read ─▶ listed.c makes paths of it
 *                              ▲   └ lost: what it said last goes on to count
 *                              └──────┘ for as long as it takes
 *   dropped ─▶ its connection is shut down ─▶ over ─▶ freed, when callers are through with it */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/guide.h"

enum { KATO_MS = 30000 }; /* a service tells of changes only to those who keep alive */

/* --- coming ----------------------------------------------------------------------------------- */

void host_guides_init(struct weft_ctrl *ctrl)
{
	weft_list_init(&ctrl->guides);
	weft_task_init(&ctrl->review, host_review);
}

static void free_guide(struct host_guide *guide)
{
	if (guide->ctrl)
		host_ctrl_free(guide->ctrl);
	free(guide->reading.page);
	free(guide);
}

static void free_guidep(struct host_guide **guide)
{
	if (*guide)
		free_guide(*guide);
}

static struct host_config config_of(const struct host_config *wanted)
{
	struct host_config config = *wanted;

	strcpy(config.subnqn, NVME_NQN_DISCOVERY);
	config.nsid = 0;
	if (!config.options.keepalive_ms)
		config.options.keepalive_ms = KATO_MS;
	return config;
}

/* With a path, whose address is not set yet. */
static int create(struct weft_ctrl *owner, const struct host_config *wanted,
		  struct host_guide **out, struct weft_err *err)
{
	_cleanup_(free_guidep) struct host_guide *guide = calloc(1, sizeof(*guide));
	struct host_config config = config_of(wanted);
	struct host_path *path;
	int rc;

	if (guide)
		guide->reading.page = malloc(HOST_LOG_PIECE * sizeof(struct nvmf_disc_log_entry));
	if (!guide || !guide->reading.page)
		return weft_fail(err, -ENOMEM, "no memory for a discovery service");
	guide->owner = owner;
	guide->wanted = *wanted;
	rc = host_ctrl_create(&config, guide, &guide->ctrl, err);
	if (rc == 0)
		rc = host_path_create(guide->ctrl, &config, &path, err);
	if (rc < 0)
		return rc;
	host_paths_insert(path);
	*out = take_ptr(&guide);
	return 0;
}

int host_guide_add(struct weft_ctrl *ctrl, const struct host_place *place, struct weft_err *err)
{
	struct host_guide *guide;
	int rc = create(ctrl, &place->config, &guide, err);

	if (rc < 0)
		return rc;
	weft_list_push(&ctrl->guides, &guide->link);
	return host_path_set_address(host_guide_path(guide), &place->parts, err);
}

void host_guide_refer(struct host_guide *from, const struct host_spot *spot)
{
	struct weft_ctrl *owner = from->owner;
	struct host_guide *guide;
	struct host_path *path;
	unsigned count = 0;

	weft_list_for_each(guide, &owner->guides, link)
		count++;
	if (count >= HOST_GUIDES_MAX || count >= from->wanted.options.discovery_services ||
	    create(owner, &from->wanted, &guide, NULL) < 0)
		return;
	guide->depth = from->depth + 1;
	path = host_guide_path(guide);
	host_path_lead_to(path, spot->transport, &spot->addr);
	pthread_mutex_lock(&owner->lock);
	guide->tried = owner->late;
	weft_list_push(&owner->guides, &guide->link);
	pthread_mutex_unlock(&owner->lock);
	host_path_start(path);
}

/* Who waits for the first path does not wait for services that take longer. What they list counts
 * when it comes. */
static void on_late(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, life);
	struct weft_err why = { "" };
	struct host_guide *guide;
	int rc = host_discovery_late(&ctrl->config.options, &why);

	ctrl->late = true;
	weft_list_for_each(guide, &ctrl->guides, link) {
		if (!guide->tried)
			host_guide_failed(guide, rc, &why);
	}
}

void host_guides_start(struct weft_ctrl *ctrl)
{
	struct host_guide *guide;

	if (!weft_list_empty(&ctrl->guides)) {
		ctrl->life.fn = on_late;
		weft_timer_set(ctrl->reactor, &ctrl->life, ctrl->config.options.discovery_ms);
	}
	weft_list_for_each(guide, &ctrl->guides, link)
		host_path_start(host_guide_path(guide));
}

/* --- going ------------------------------------------------------------------------------------ */

void host_guide_drop(struct host_guide *guide)
{
	host_guide_read_stop(guide);
	host_paths_stop(guide->ctrl);
}

void host_guides_stop(struct weft_ctrl *ctrl)
{
	struct host_guide *guide;

	weft_list_for_each(guide, &ctrl->guides, link)
		host_guide_drop(guide);
}

static void bury(struct weft_msg *msg)
{
	struct host_guide *guide = container_of(msg, struct host_guide, msg);
	struct weft_ctrl *owner = guide->owner;

	pthread_mutex_lock(&owner->lock);
	weft_list_remove(&guide->link);
	pthread_mutex_unlock(&owner->lock);
	free_guide(guide);
	if (owner->stopping)
		host_home_end(owner);
	else
		host_review_soon(owner);
}

void host_guide_over(struct host_guide *guide)
{
	if (guide->over)
		return;
	guide->over = true;
	guide->msg.fn = bury;
	weft_reactor_post(guide->ctrl->reactor, &guide->msg);
}

void host_guides_free(struct weft_ctrl *ctrl)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&ctrl->guides)))
		free_guide(container_of(link, struct host_guide, link));
}

/* --- what becomes of it ----------------------------------------------------------------------- */

bool host_guide_leads_to(const struct host_guide *guide, const struct host_spot *spot)
{
	const struct host_config *config = &host_guide_path(guide)->config;

	return config->transport == spot->transport && weft_addr_equal(&config->addr, &spot->addr);
}

void host_guide_answered(struct host_guide *guide)
{
	guide->answered = guide->fresh = true;
	host_review_soon(guide->owner);
}

void host_guide_failed(struct host_guide *guide, int rc, const struct weft_err *why)
{
	struct weft_ctrl *owner = guide->owner;

	pthread_mutex_lock(&owner->lock);
	guide->tried = true;
	guide->rc = rc;
	guide->why = *why;
	host_path_address(host_guide_path(guide), guide->address, sizeof(guide->address));
	pthread_cond_broadcast(&owner->changed);
	pthread_mutex_unlock(&owner->lock);
}

bool host_guides_awaited(const struct weft_ctrl *ctrl)
{
	struct host_guide *guide;

	weft_list_for_each(guide, &ctrl->guides, link) {
		if (!guide->tried)
			return true;
	}
	return false;
}

static void tell_program(const struct host_guide *guide, const struct host_path *path)
{
	host_event_push(guide->owner, WEFT_EVENT_DISCOVERY, path->state, 0, "%s: %s%s%s",
			path->pub.address, weft_state_text(path->state),
			path->why.text[0] ? ": " : "", path->why.text);
}

void host_guide_look(struct host_guide *guide)
{
	const struct host_path *path = host_guide_path(guide);

	if (path->stopping)
		return;
	if (path->state != guide->state && path->generation && guide->generation)
		tell_program(guide, path);
	guide->state = path->state;
	if (path->state == WEFT_LIVE && path->generation != guide->generation) {
		guide->generation = path->generation;
		host_guide_read(guide);
	} else if (path->state == WEFT_RECONNECTING && path->tried) {
		host_guide_failed(guide, path->why_rc, &path->why);
	}
}
