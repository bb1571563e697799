/* import_check.c - a takeover needs the configuration that runs.
 *
 * Subsystems and namespaces must be the same. Values that the old process chose (serial, UUID)
 * or that changed while it ran (size) are copied from it, because hosts know them. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/plural.h"
#include "base/size.h"
#include "daemon/takeover/frames.h"
#include "daemon/internal.h"

#define SAVE "; weft ctl save writes what runs"

/* --- one namespace ---------------------------------------------------------------------------- */

static int fail_differs(const struct weft_running_subsys *s, const struct weft_running_ns *ns,
			const char *what, struct weft_err *err)
{
	return weft_fail(err, -EINVAL, "%s namespace %u: the running one has another %s" SAVE,
			 s->nqn, ns->nsid, what);
}

static int fail_differs_in_use(const struct weft_running_subsys *s,
			       const struct weft_running_ns *ns, bool runs_so, const char *so,
			       struct weft_err *err)
{
	return weft_fail(err, -EINVAL,
			 "%s namespace %u: the %s one is %s, the %s one is not; set that back, or "
			 "remove it and add it again with weft ctl",
			 s->nqn, ns->nsid, runs_so ? "running" : "configured", so,
			 runs_so ? "configured" : "running");
}

/* The same storage, used in the same way. */
static int check_backend(const struct weft_ns_config *config, const struct weft_running_subsys *s,
			 const struct weft_running_ns *ns, const struct weft_spec *spec,
			 struct weft_err *err)
{
	struct weft_spec mine = config->spec;

	mine.read_only = spec->read_only;
	mine.direct = spec->direct;
	if (!weft_spec_same(&mine, spec))
		return fail_differs(s, ns, "backend", err);
	if (config->spec.read_only != spec->read_only)
		return fail_differs_in_use(s, ns, spec->read_only, "read-only", err);
	if (config->spec.direct != spec->direct)
		return fail_differs_in_use(s, ns, spec->direct, "opened with direct", err);
	return 0;
}

/* Filters do not concern hosts, so the new process's are used. true: they change. */
static bool take_filters(struct weft_spec *spec, const struct weft_spec *mine)
{
	bool same = !strcmp(spec->delay, mine->delay) && !strcmp(spec->error, mine->error);

	strcpy(spec->delay, mine->delay);
	strcpy(spec->error, mine->error);
	return !same;
}

static int adopt_ns(struct weft_ns_config *config, const struct weft_running_subsys *s,
		    struct weft_running_ns *ns, struct weft_err *err)
{
	struct weft_spec spec;
	int rc = weft_spec_parse(ns->backend, &spec, err);

	if (!rc)
		rc = check_backend(config, s, ns, &spec, err);
	if (rc < 0)
		return rc;
	if (config->block && config->block != ns->block)
		return fail_differs(s, ns, "block size", err);
	if (config->uuid[0] && strcasecmp(config->uuid, ns->uuid))
		return fail_differs(s, ns, "uuid", err);
	if (config->ana_group && config->ana_group != ns->ana_group)
		return fail_differs(s, ns, "ANA group", err);
	spec.node = config->spec.node;
	config->refiltered = take_filters(&spec, &config->spec);
	config->spec = spec;
	config->nsid = ns->nsid;
	config->block = ns->block;
	config->ana_group = ns->ana_group;
	strcpy(config->uuid, ns->uuid);
	config->adopted = true;
	config->sync_failed = ns->sync_failed;
	config->fd = take_fd(&ns->fd);
	config->size = ns->size;
	return 0;
}

/* --- one subsystem ---------------------------------------------------------------------------- */

static struct weft_ns_config *find_config_ns(struct weft_subsys_config *config, uint32_t nsid)
{
	struct weft_ns_config *ns = config->namespaces.at;

	for (unsigned i = 0; i < config->namespaces.count; i++)
		if (ns[i].nsid == nsid)
			return &ns[i];
	return NULL;
}

static int adopt_namespaces(struct weft_subsys_config *config, struct weft_running_subsys *s,
			    struct weft_err *err)
{
	struct weft_running_ns *ns = s->namespaces.at;
	struct weft_ns_config *mine;
	int rc = 0;

	for (unsigned i = 0; i < s->namespaces.count && !rc; i++) {
		mine = find_config_ns(config, ns[i].nsid);
		rc = mine ? adopt_ns(mine, s, &ns[i], err) :
			    weft_fail(err, -EINVAL,
				      "%s namespace %u is running and not configured; remove it "
				      "first with weft ctl namespace-remove nqn=%s nsid=%u, or put "
				      "it back",
				      s->nqn, ns[i].nsid, s->nqn, ns[i].nsid);
	}
	if (!rc && config->namespaces.count != s->namespaces.count)
		rc = weft_fail(err, -EINVAL,
			       "%s: %u namespace%s configured and %u running; add others "
			       "after the takeover",
			       s->nqn, config->namespaces.count,
			       weft_plural(config->namespaces.count), s->namespaces.count);
	return rc;
}

/* The state file, the node and the number of nodes must be the same. */
static int check_state(const struct weft_subsys_config *config, const struct weft_running_subsys *s,
		       struct weft_err *err)
{
	if (strcmp(config->state, s->state))
		return weft_fail(err, -EINVAL, "%s: the running one has its state %s%s" SAVE,
				 s->nqn, s->state[0] ? "in " : "in memory", s->state);
	if (config->cluster.node == s->node && config->cluster.nodes == s->nodes)
		return 0;
	if (!s->node)
		return weft_fail(err, -EINVAL,
				 "%s: the running one is of no cluster; stop it and start this one",
				 s->nqn);
	return weft_fail(err, -EINVAL, "%s: the running one is node %u of %u" SAVE, s->nqn, s->node,
			 s->nodes);
}

static int adopt_subsys(struct weft_subsys_config *config, struct weft_running_subsys *s,
			struct weft_err *err)
{
	int rc;

	if (config->serial[0] && strcmp(config->serial, s->serial))
		return weft_fail(err, -EINVAL, "%s: the running one has another serial" SAVE,
				 s->nqn);
	if (config->model[0] && strcmp(config->model, s->model))
		return weft_fail(err, -EINVAL, "%s: the running one has another model" SAVE,
				 s->nqn);
	rc = check_state(config, s, err);
	if (rc < 0)
		return rc;
	strcpy(config->serial, s->serial);
	strcpy(config->model, s->model);
	return adopt_namespaces(config, s, err);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Hosts were told these limits: queues may be as deep, and there may be as many. */
static int check_limits(const struct weft_config *config, const struct weft_running_config *running,
			struct weft_err *err)
{
	if (config->depth >= running->depth && config->queues >= running->queues)
		return 0;
	return weft_fail(err, -EINVAL,
			 "depth and queues must not be less than those that run, %u and %u",
			 running->depth, running->queues);
}

int weft_takeover_check_config(struct weft_config *config, struct weft_running_config *running,
			       struct weft_err *err)
{
	struct weft_running_subsys *s = running->subsystems.at;
	struct weft_subsys_config *mine;
	int rc = check_limits(config, running, err);

	for (unsigned i = 0; i < running->subsystems.count && !rc; i++) {
		mine = weft_config_subsys(config, s[i].nqn);
		rc = mine ? adopt_subsys(mine, &s[i], err) :
			    weft_fail(err, -EINVAL,
				      "%s is running and not configured; remove it first with "
				      "weft ctl subsystem-remove nqn=%s, or put it back",
				      s[i].nqn, s[i].nqn);
	}
	if (!rc && config->subsystems.count != running->subsystems.count)
		rc = weft_fail(err, -EINVAL,
			       "%u subsystem%s configured and %u running; add others after "
			       "the takeover",
			       config->subsystems.count, weft_plural(config->subsystems.count),
			       running->subsystems.count);
	return rc;
}
