/* apply.c - a configuration becomes subsystems and namespaces: open all storage first, then add
 * them to the target. */
#include "daemon/internal.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

#define BUSY_WAIT_MS  10
#define BUSY_WAIT_MAX 100

static int check_path(const char *key, const char *type, const char *path, struct weft_err *err)
{
	if (path[0] == '/')
		return 0;
	return weft_fail(err, -EINVAL,
			 "%s: %s:%.180s is relative to the directory that the target was "
			 "started in; expected a path that begins with /",
			 key, type, path);
}

int weft_config_ns_check_path(const struct weft_ns_config *ns, struct weft_err *err)
{
	if (ns->spec.ops->arg_is_size)
		return 0;
	return check_path("backend", ns->spec.type, ns->spec.arg, err);
}

int weft_config_subsys_check_path(const struct weft_subsys_config *subsys, struct weft_err *err)
{
	const char *path = strchr(subsys->state, ':');

	return path ? check_path("state", "file", path + 1, err) : 0;
}

/* A killed target may hold its locks for a moment longer, until the kernel has ended its last
 * I/O. */
static int open_with_retries(struct weft_ns_config *ns, struct weft_err *err)
{
	const struct timespec pause = { .tv_nsec = BUSY_WAIT_MS * 1000000L };
	struct weft_err busy = { "" };
	int rc = weft_backend_open(&ns->be, &ns->spec, &busy);

	if (rc == -EBUSY)
		weft_info("waiting for %s, which is locked", ns->spec.arg);
	for (unsigned i = 0; rc == -EBUSY && i < BUSY_WAIT_MAX; i++) {
		nanosleep(&pause, NULL);
		busy.text[0] = '\0';
		rc = weft_backend_open(&ns->be, &ns->spec, &busy);
	}
	return rc < 0 && busy.text[0] ? weft_fail(err, rc, "%s", busy.text) : rc;
}

static int adopt_backend(struct weft_ns_config *ns, struct weft_err *err)
{
	int rc = weft_backend_adopt(&ns->be, &ns->spec, take_fd(&ns->fd), err);

	if (rc < 0)
		return rc;
	if (ns->be->size != ns->size)
		return weft_fail(err, -EINVAL,
				 "%s has another size than the running target serves; "
				 "weft ctl namespace-resize tells it",
				 ns->be->spec);
	atomic_store(&weft_backend_storage(ns->be)->sync_failed, ns->sync_failed);
	return 0;
}

static int open_backend(struct weft_ns_config *ns, bool wait, struct weft_err *err)
{
	if (ns->adopted)
		return adopt_backend(ns, err);
	return wait ? open_with_retries(ns, err) : weft_backend_open(&ns->be, &ns->spec, err);
}

int weft_config_ns_open(struct weft_ns_config *ns, bool wait, struct weft_err *err)
{
	int rc = open_backend(ns, wait, err);

	if (rc < 0)
		return weft_fail(err, rc, "%s:%s: %s", ns->spec.type, ns->spec.arg, strerror(-rc));
	ns->be->never_served = !ns->adopted;
	return 0;
}

bool weft_config_node_runs(const struct weft_subsys_config *subsys, struct weft_err *err)
{
	char where[WEFT_URI_MAX];

	if (!subsys->cluster.node ||
	    !weft_cluster_node_runs(subsys->state, subsys->cluster.node, where))
		return false;
	err->text[0] = '\0';
	weft_fail(err, -EBUSY,
		  "%s: node %u of this cluster is running already%s%s; stop that one, or give this "
		  "one another number (cluster: node)",
		  subsys->nqn, subsys->cluster.node, where[0] ? ", and listens on " : "", where);
	return true;
}

int weft_config_subsys_open(struct weft_subsys_config *subsys, bool wait, struct weft_err *err)
{
	struct weft_ns_config *ns = subsys->namespaces.at;
	int rc = 0;

	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++) {
		rc = weft_config_ns_open(&ns[i], wait, err);
		if (rc == -EBUSY && !ns[i].adopted)
			weft_config_node_runs(subsys, err);
	}
	return rc;
}

int weft_config_ns_apply(struct weft_subsys *s, struct weft_ns_config *ns, struct weft_err *err)
{
	struct weft_ns_options options = { .nsid = ns->nsid,
					   .block = ns->block,
					   .uuid = ns->uuid[0] ? ns->uuid : NULL,
					   .ana_group = ns->ana_group };
	int rc = weft_ns_add(s, &options, ns->be, &ns->nsid, err);

	if (!rc)
		ns->be = NULL;
	return rc;
}

static int add_hosts_and_namespaces(struct weft_subsys *s, struct weft_subsys_config *subsys,
				    struct weft_err *err)
{
	char(*host)[WEFT_NQN_MAX + 1] = subsys->hosts.at;
	struct weft_ns_config *ns = subsys->namespaces.at;
	int rc = 0;

	for (unsigned i = 0; i < subsys->hosts.count && !rc; i++)
		rc = weft_subsys_allow(s, host[i], err);
	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++)
		rc = weft_config_ns_apply(s, &ns[i], err);
	return rc;
}

struct weft_store_options weft_config_store_options(struct weft_daemon *d,
						    const struct weft_subsys_config *subsys)
{
	return (struct weft_store_options){
		.control_reactor = d->control_reactor,
		.spec = subsys->state,
		.node = subsys->cluster.node ? subsys->cluster.node : 1,
		.nodes = subsys->cluster.nodes ? subsys->cluster.nodes : 1,
		.successor = d->import,
	};
}

int weft_config_subsys_apply(struct weft_daemon *d, struct weft_subsys_config *subsys,
			     struct weft_store *store, struct weft_subsys **s, struct weft_err *err)
{
	struct weft_subsys_options options = {
		.nqn = subsys->nqn,
		.serial = subsys->serial[0] ? subsys->serial : NULL,
		.model = subsys->model[0] ? subsys->model : NULL,
		.allow_any_host = subsys->access != WEFT_ALLOWED_LISTED,
		.ana = subsys->ana.at,
		.nana = subsys->ana.count,
		.node = subsys->cluster.node,
		.nodes = subsys->cluster.nodes,
		.store = store,
	};
	int rc;

	*s = NULL;
	rc = weft_subsys_add(d->target, &options, s, err);
	if (!rc)
		rc = add_hosts_and_namespaces(*s, subsys, err);
	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", subsys->nqn, strerror(-rc));
	weft_subsys_start(*s);
	if (subsys->access == WEFT_ALLOWED_DEFAULT)
		json_object_set_new(d->open_by_default, subsys->nqn, json_true());
	return 0;
}
