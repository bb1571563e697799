/* path_publish.c - publishes a path's state: to its path queues, merged with the other paths' to
 * the controller, to waiting threads, and as an event to the program. A controller is live while
 * one of its paths is.
 *
 *   path.c ─▶ publish ─┬─▶ path->pub    for the path queues of this path
 *                      ├─▶ ctrl->pub    all paths merged, for everybody else
 *                      └─▶ queues get an update, waiting threads wake, the program gets an event */
#include <stdio.h>
#include <string.h>

#include "host/discovery/follower.h"

const char *weft_state_text(enum weft_state state)
{
	static const char *const texts[] = {
		[WEFT_CONNECTING] = "connecting",     [WEFT_LIVE] = "live",
		[WEFT_RESETTING] = "resetting",       [WEFT_DEAD] = "dead",
		[WEFT_RECONNECTING] = "reconnecting",
	};

	return (size_t)state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

/* The merged traits are what every path supports: a command may go through any of them. */
static void merge_traits(struct host_traits *all, const struct host_traits *one)
{
	uint32_t queues = all->queues > one->queues ? all->queues : one->queues;

	all->queues = queues;
	all->depth = all->depth < one->depth ? all->depth : one->depth;
	all->transfer_max = all->transfer_max < one->transfer_max ? all->transfer_max :
								    one->transfer_max;
	all->oncs &= one->oncs;
	all->fuses &= one->fuses;
	all->vwc |= one->vwc;
}

/* Is @a the better state? The controller's state is the best of its paths'. */
static bool is_better(enum weft_state a, enum weft_state b)
{
	static const unsigned rank[] = {
		[WEFT_DEAD] = 0,       [WEFT_RESETTING] = 1, [WEFT_RECONNECTING] = 2,
		[WEFT_CONNECTING] = 3, [WEFT_LIVE] = 4,
	};

	assert((unsigned)a <= WEFT_DEAD && (unsigned)b <= WEFT_DEAD);
	return rank[a] > rank[b];
}

/* While no path is live, the last known traits stay. */
void host_ctrl_merge_paths(struct weft_ctrl *ctrl)
{
	struct host_published *all = &ctrl->pub;
	unsigned live = 0;

	assert_locked(&ctrl->lock);
	all->state = WEFT_DEAD;
	all->takes_dmabuf = true;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_published *one = ctrl->paths[i] ? &ctrl->paths[i]->pub : NULL;

		if (!one)
			continue;
		all->takes_dmabuf &= one->takes_dmabuf;
		if (is_better(one->state, all->state))
			all->state = one->state;
		if (one->state != WEFT_LIVE)
			continue;
		if (live++) {
			merge_traits(&all->traits, &one->traits);
		} else {
			all->traits = one->traits;
			all->path = one->path;
			memcpy(all->address, one->address, sizeof(all->address));
		}
	}
}

/* Paths that are being removed do not count. */
static unsigned count_paths(const struct weft_ctrl *ctrl)
{
	unsigned n = 0;

	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		n += ctrl->paths[i] && !host_path_is_removing(ctrl->paths[i]);
	return n;
}

void host_path_why(const struct host_path *path, struct weft_err *why)
{
	const struct host_published *pub = &path->pub;
	bool alone = count_paths(path->ctrl) == 1 && !path->discovered_by[0];

	assert_locked(&path->ctrl->lock);
	snprintf(why->text, sizeof(why->text), "%s%s%.*s",
		 alone ? "" : host_address_text(pub->address), alone ? "" : ": ", 300,
		 pub->why.text);
}

static void publish_one(struct host_path *path)
{
	struct host_published *pub = &path->pub;
	bool lives = host_path_is_up(path);

	assert_locked(&path->ctrl->lock);
	if (path->assoc.generation != pub->generation && pub->generation) {
		pub->reconnects++;
		path->ctrl->pub.reconnects++;
	}
	path->ctrl->pub.losses += pub->lives && !lives && !host_path_is_stopping(path);
	pub->lives = lives;
	if (path->assoc.generation != pub->generation)
		path->ready = 0;
	pub->state = host_path_public_state(path);
	pub->generation = path->assoc.generation;
	pub->tried = path->reconnect.tried;
	host_path_address(path, pub->address, sizeof(pub->address));
	pub->takes_dmabuf = path->config.transport->takes_dmabuf;
	pub->rc = path->ctrl->pub.rc = path->assoc.rc;
	if (!lives && path->assoc.why.text[0]) {
		pub->why = path->assoc.why;
		host_path_why(path, &path->ctrl->pub.why);
	}
	if (!lives)
		return;
	pub->traits = path->assoc.traits;
	pub->path = path->assoc.link->path;
}

bool host_path_is_only(const struct host_path *path)
{
	bool alone;

	weft_mutex_lock(&path->ctrl->lock);
	alone = count_paths(path->ctrl) == 1;
	weft_mutex_unlock(&path->ctrl->lock);
	return alone;
}

struct host_path *host_path_find_other_live(const struct host_path *path)
{
	struct host_path *const *paths = path->ctrl->paths;

	assert_on(path->reactor);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (paths[i] && paths[i] != path && host_path_is_up(paths[i]))
			return paths[i];
	return NULL;
}

static void push_path_event(const struct host_path *path, enum weft_event_kind kind,
			    enum weft_state state)
{
	bool lives = state == WEFT_LIVE, one = kind == WEFT_EVENT_PATH;

	assert_on(path->reactor);
	host_event_push(path->ctrl, kind, state, 0, "%s%s%s%s%s", one ? path->pub.address : "",
			one ? ": " : "", weft_state_text(state),
			lives || !path->assoc.why.text[0] ? "" : ": ",
			lives ? "" : path->assoc.why.text);
}

void host_ctrl_wake_all(struct weft_ctrl *ctrl)
{
	struct weft_queue *queue;

	assert_locked(&ctrl->lock);
	weft_list_for_each(queue, &ctrl->queues, ctrl_link)
		host_queue_post_update(queue);
	pthread_cond_broadcast(&ctrl->changed);
}

void host_path_publish(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;
	enum weft_state before, path_before, now;
	bool alone;

	assert_on(path->reactor);
	assert(path->state != HOST_PATH_STOPPED);
	weft_mutex_lock(&ctrl->lock);
	alone = count_paths(ctrl) == 1;
	before = ctrl->pub.state;
	path_before = path->pub.state;
	publish_one(path);
	host_ctrl_merge_paths(ctrl);
	host_access_update(ctrl);
	now = ctrl->pub.state;
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
	if (path_before != path->pub.state && !alone)
		push_path_event(path, WEFT_EVENT_PATH, path->pub.state);
	/* The first connection needs no event: weft_connect() returns. */
	if (now != before && before != WEFT_CONNECTING)
		push_path_event(path, WEFT_EVENT_STATE, now);
	if (now == WEFT_DEAD)
		host_user_admin_fail_waiting(ctrl, path->assoc.rc);
	host_paths_reconcile_soon(ctrl);
	if (ctrl->follower)
		host_follower_update(ctrl->follower);
}
