/* log_running.c - log what is served: at the start, and after a change. */
#include "daemon/internal.h"

#include <string.h>

#include "base/cpus.h"
#include "base/log.h"
#include "base/size.h"
#include "proto/nvme.h"

struct log_walk {
	const char *only; /* of this subsystem; NULL: all of it */
	char at[WEFT_NQN_MAX + 1];
	unsigned namespaces, listeners;
};

static void log_listener(void *arg, const char *uri, uint16_t portid)
{
	struct log_walk *w = arg;

	(void)portid;
	w->listeners++;
	if (!w->only)
		weft_info("listening on %s", uri);
}

/* The lines of its namespaces, if it has any, name the subsystem. */
static void leave_subsys(struct log_walk *w)
{
	if (w->at[0] && !w->namespaces)
		weft_info("%s: no namespaces", w->at);
	w->at[0] = '\0';
	w->namespaces = 0;
}

static void log_enter_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct log_walk *w = arg;

	leave_subsys(w);
	if (w->only ? !strcmp(info->nqn, w->only) : strcmp(info->nqn, NVME_NQN_DISCOVERY))
		snprintf(w->at, sizeof(w->at), "%s", info->nqn);
}

static void log_one_ns(const char *nqn, const struct weft_target_ns_info *info)
{
	char size[32];

	weft_size_format(info->size, size, sizeof(size));
	weft_info("%s namespace %u: %s, %s in blocks of %u%s", nqn, info->nsid, info->backend, size,
		  info->block, info->read_only ? ", read-only" : "");
}

static void log_visited_ns(void *arg, const struct weft_target_ns_info *info)
{
	struct log_walk *w = arg;

	w->namespaces++;
	if (w->at[0])
		log_one_ns(w->at, info);
}

static const struct weft_target_visitor visitor = {
	.listener = log_listener,
	.subsys = log_enter_subsys,
	.ns = log_visited_ns,
};

void weft_daemon_log_started(struct weft_daemon *d)
{
	struct log_walk w = { NULL };
	char cpus[128];

	weft_cpus_format(&d->config->cpus, cpus, sizeof(cpus));
	weft_info("engine %s on CPUs %s%s", weft_reactor_engine_name(d->threads.reactors[0]), cpus,
		  d->config->poll ? ", polling" : "");
	weft_info("control socket %s", d->config->control);
	weft_target_visit(d->target, &visitor, &w);
	leave_subsys(&w);
	if (!w.listeners)
		weft_warn("no listener: no host can connect until listener-add");
	weft_info("ready");
}

void weft_daemon_log_subsys(struct weft_daemon *d, const char *nqn)
{
	struct log_walk w = { .only = nqn };

	weft_target_visit(d->target, &visitor, &w);
	leave_subsys(&w);
}

void weft_daemon_log_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid)
{
	struct weft_target_ns_info info;

	if (weft_daemon_find_ns(d, nqn, nsid, &info))
		log_one_ns(nqn, &info);
}
