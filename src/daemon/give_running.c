/* give_running.c - what this target serves, and the storage of it, for the one that takes its
 * place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/handoff.h"
#include "daemon/state.h"
#include "proto/nvme.h"

struct walk {
	struct weft_running running;
	bool failed;
};

/* One more, zeroed; NULL: out of memory. */
static void *append(struct walk *w, struct weft_items *items, size_t size)
{
	char *at = realloc(items->at, (items->count + 1) * size);

	if (!at) {
		w->failed = true;
		return NULL;
	}
	items->at = at;
	return memset(at + items->count++ * size, 0, size);
}

static void add_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct walk *w = arg;
	struct weft_running_subsys *s;

	if (!strcmp(info->nqn, NVME_NQN_DISCOVERY))
		return;
	s = append(w, &w->running.subsystems, sizeof(*s));
	if (!s)
		return;
	strcpy(s->nqn, info->nqn);
	strcpy(s->serial, info->serial);
	strcpy(s->model, info->model);
	snprintf(s->state, sizeof(s->state), "%s", info->state ? info->state : "");
	s->node = info->node;
	s->nodes = info->nodes;
}

static void add_ns(void *arg, const struct weft_ns_info *info)
{
	struct walk *w = arg;
	struct weft_running_subsys *s = w->running.subsystems.at;
	struct weft_running_ns *ns;

	ns = append(w, &s[w->running.subsystems.count - 1].namespaces, sizeof(*ns));
	if (!ns)
		return;
	ns->nsid = info->nsid;
	ns->block = info->block;
	ns->ana_group = info->ana_group;
	ns->size = info->size;
	strcpy(ns->uuid, info->uuid);
	snprintf(ns->backend, sizeof(ns->backend), "%s", info->backend);
	ns->sync_failed = info->sync_failed;
	ns->fd = info->descriptor;
	ns->has_fd = ns->fd >= 0;
}

int weft_give_running(struct weft_daemon *d, int channel)
{
	const struct weft_target_visitor visitor = { .subsys = add_subsys, .ns = add_ns };
	struct walk w = { .running = { .depth = d->config->depth, .queues = d->config->queues } };
	struct weft_frame frame = { 0 };
	int rc;

	weft_target_visit(d->target, &visitor, &w);
	rc = w.failed ? -ENOMEM : weft_running_write(&w.running, &frame);
	if (!rc)
		rc = weft_channel_send(channel, &frame);
	weft_frame_sent_free(&frame);
	weft_running_free(&w.running);
	return rc;
}
