/* paths.c - the paths of a controller together: how they come, go, and what they add up to.
 *
 *   path.c ─▶ publish ─┬─▶ path->pub    for the lanes to this path
 *                      ├─▶ ctrl->pub    the best of all paths, for everybody else
 *                      └─▶ queues look, waiters wake, the program gets an event
 *
 * A controller lives while one of its paths does. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "host/internal.h"

const char *weft_state_text(enum weft_state state)
{
	static const char *const texts[] = {
		[WEFT_CONNECTING] = "connecting",     [WEFT_LIVE] = "live",
		[WEFT_RESETTING] = "resetting",       [WEFT_DEAD] = "dead",
		[WEFT_RECONNECTING] = "reconnecting",
	};

	return (size_t)state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

/* --- coming and going ----------------------------------------------------------------------------- */

int host_path_create(struct weft_ctrl *ctrl, const struct host_config *config,
		     struct host_path **out, struct weft_err *err)
{
	struct host_path *path = calloc(1, sizeof(*path));

	if (path) {
		path->page = malloc(HOST_PAGE);
		path->aer_page = malloc(HOST_AERS * HOST_PAGE);
		path->scan_page = malloc(2 * HOST_PAGE);
	}
	if (!path || !path->page || !path->aer_page || !path->scan_page) {
		host_path_free(path);
		return weft_fail(err, -ENOMEM, "no memory for a controller");
	}
	path->ctrl = ctrl;
	path->reactor = ctrl->reactor;
	path->config = *config;
	if (getrandom(&path->random, sizeof(path->random), GRND_NONBLOCK) < 0)
		path->random = (unsigned)getpid();
	host_admin_init(path);
	*out = path;
	return 0;
}

void host_path_free(struct host_path *path)
{
	if (!path)
		return;
	free(path->page);
	free(path->aer_page);
	free(path->scan_page);
	free(path);
}

/* The last one that goes ends home. */
void host_path_over(struct host_path *path)
{
	weft_reactor_stop(path->reactor);
}

void host_paths_died(struct weft_ctrl *ctrl, int rc)
{
	if (ctrl->pub.state == WEFT_DEAD)
		host_user_fail_waiting(ctrl, rc);
}

/* --- what they add up to ---------------------------------------------------------------------------- */

/* Under ctrl->lock. */
static void combine(struct weft_ctrl *ctrl)
{
	ctrl->pub = ctrl->paths[0]->pub;
}

/* Under ctrl->lock. */
static void publish_one(struct host_path *path)
{
	struct host_published *pub = &path->pub;

	if (path->generation != pub->generation)
		pub->reconnects += pub->generation > 0;
	pub->state = path->state;
	pub->generation = path->generation;
	pub->rc = path->why_rc;
	if (path->why.text[0])
		pub->why = path->why;
	if (path->state != WEFT_LIVE)
		return;
	pub->traits = path->traits;
	pub->path = path->link->path;
}

static void tell_program(struct host_path *path, enum weft_state state)
{
	bool lives = state == WEFT_LIVE;

	host_event_push(path->ctrl, WEFT_EVENT_STATE, state, 0, "%s%s%s", weft_state_text(state),
			lives || !path->why.text[0] ? "" : ": ", lives ? "" : path->why.text);
}

void host_path_publish(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;
	enum weft_state before, now;
	struct weft_queue *queue;

	pthread_mutex_lock(&ctrl->lock);
	before = ctrl->pub.state;
	publish_one(path);
	combine(ctrl);
	now = ctrl->pub.state;
	weft_list_for_each(queue, &ctrl->queues, link_in_ctrl)
		host_queue_tell(queue);
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
	/* That the first connection lives, weft_connect() says. */
	if (now != before && before != WEFT_CONNECTING)
		tell_program(path, now);
}
