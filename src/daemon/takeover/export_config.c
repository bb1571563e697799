/* export_config.c - build the "prepare" frame: subsystems, allowed hosts, namespaces, and the
 * descriptors of their storage. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/takeover/frames.h"
#include "daemon/internal.h"
#include "proto/nvme.h"

struct config_walk {
	struct weft_running_config running;
	bool failed;
};

/* Appends a zeroed item; NULL: out of memory. */
static void *append_item(struct config_walk *w, struct weft_items *items, size_t size)
{
	char *at = realloc(items->at, (items->count + 1) * size);

	if (!at) {
		w->failed = true;
		return NULL;
	}
	items->at = at;
	return memset(at + items->count++ * size, 0, size);
}

static void config_add_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct config_walk *w = arg;
	struct weft_running_subsys *s;

	if (!strcmp(info->nqn, NVME_NQN_DISCOVERY))
		return;
	s = append_item(w, &w->running.subsystems, sizeof(*s));
	if (!s)
		return;
	strcpy(s->nqn, info->nqn);
	strcpy(s->serial, info->serial);
	strcpy(s->model, info->model);
	snprintf(s->state, sizeof(s->state), "%s", info->state ? info->state : "");
	s->node = info->node;
	s->nodes = info->nodes;
	if (w->running.format >= WEFT_TAKEOVER_FORMAT_ACCESS)
		s->access = info->allow_any_host ? WEFT_ALLOWED_ANY : WEFT_ALLOWED_LISTED;
}

static void config_add_host(void *arg, const char *hostnqn)
{
	struct config_walk *w = arg;
	struct weft_running_subsys *s = w->running.subsystems.at;
	char *host;

	if (w->failed || w->running.format < WEFT_TAKEOVER_FORMAT_ACCESS)
		return;
	assert(w->running.subsystems.count);
	host = append_item(w, &s[w->running.subsystems.count - 1].hosts, WEFT_NQN_MAX + 1);
	if (host)
		strcpy(host, hostnqn);
}

static void config_add_ns(void *arg, const struct weft_target_ns_info *info)
{
	struct config_walk *w = arg;
	struct weft_running_subsys *s = w->running.subsystems.at;
	struct weft_running_ns *ns;

	if (w->failed) /* perhaps its subsystem is not there */
		return;
	assert(w->running.subsystems.count);
	ns = append_item(w, &s[w->running.subsystems.count - 1].namespaces, sizeof(*ns));
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

int weft_takeover_export_config(struct weft_daemon *d, uint32_t format, int channel)
{
	const struct weft_target_visitor visitor = { .subsys = config_add_subsys,
						     .host = config_add_host,
						     .ns = config_add_ns };
	struct config_walk w = { .running = { .format = format,
					      .depth = d->config->depth,
					      .queues = d->config->queues } };
	struct weft_frame frame = { 0 };
	int rc;

	assert(format && format <= WEFT_TAKEOVER_FORMAT);
	weft_target_visit(d->target, &visitor, &w);
	rc = w.failed ? -ENOMEM : weft_running_config_encode(&w.running, &frame);
	if (!rc)
		rc = weft_channel_send(channel, &frame);
	weft_frame_free_borrowed(&frame);
	weft_running_config_free(&w.running);
	return rc;
}
