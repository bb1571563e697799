/* subsys.c - subsystems: their allowed hosts, their store, their removal, their counters. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/cluster/cluster.h"
#include "target/resv/resv.h"

struct weft_subsys *weft_subsys_find(struct weft_target *t, const char *nqn)
{
	struct weft_subsys *s;

	assert_on_control(t);
	weft_list_for_each(s, &t->subsystems, link)
		if (!strcmp(s->nqn, nqn))
			return s;
	return NULL;
}

struct weft_subsys *tgt_subsys_find_any(struct weft_target *t, const char *nqn)
{
	assert_on_control(t);
	return strcmp(nqn, NVME_NQN_DISCOVERY) ? weft_subsys_find(t, nqn) : t->discovery;
}

/* Each member of a cluster has its own part of the ids. */
static void set_cntlid_range(struct weft_subsys *s, const struct weft_subsys_options *options)
{
	unsigned nodes = options->nodes ? options->nodes : 1,
		 node = options->node ? options->node : 1;
	uint16_t share = (uint16_t)(NVME_CNTLID_MAX / nodes);

	assert(node <= nodes && nodes <= WEFT_NODES_MAX);
	s->cntlid_first = (uint16_t)((node - 1) * share + 1);
	s->cntlid_last = (uint16_t)(node * share);
}

struct weft_subsys *tgt_subsys_new(struct weft_target *t, const struct weft_subsys_options *options)
{
	size_t size = sizeof(struct weft_subsys) + t->npoll_groups * sizeof(struct tgt_stats);
	struct weft_subsys *s = calloc(1, size);

	if (!s)
		return NULL;
	s->target = t;
	s->allow_any_host = options->allow_any_host;
	strcpy(s->nqn, options->nqn);
	if (options->serial)
		strcpy(s->serial, options->serial);
	else
		tgt_identity_serial(s->nqn, options->nodes > 1, s->serial);
	set_cntlid_range(s, options);
	strcpy(s->model, options->model ? options->model : WEFT_MODEL_DEFAULT);
	weft_list_init(&s->hosts);
	weft_list_init(&s->ctrls);
	for (int i = 0; i < TGT_CNTLID_BUCKETS; i++)
		weft_list_init(&s->by_cntlid[i]);
	for (int i = 0; i < TGT_ENDING_BUCKETS; i++)
		weft_list_init(&s->ending[i]);
	if (tgt_ana_init(s, options) < 0) {
		free(s);
		return NULL;
	}
	return s;
}

static void subsys_free(struct weft_subsys *s)
{
	struct tgt_host *host, *tmp;

	assert(weft_list_empty(&s->ctrls) && !s->resv_changes && !s->ns_closing);
	weft_list_for_each_safe(host, tmp, &s->hosts, link)
		free(host);
	tgt_cluster_free(s);
	free(atomic_load(&s->table));
	tgt_ana_free(s);
	free(s);
}

static void ignore_store_closed(void *arg)
{
	(void)arg;
}

static void on_store_moved(void *arg)
{
	tgt_resv_store_moved(arg);
	tgt_cluster_store_moved(arg);
}

static void on_store_node_gone(void *arg, unsigned node)
{
	struct weft_subsys *s = arg;

	weft_warn("%s: node %u is gone", s->nqn, node);
	/* First the ownership of groups, because I/O waits for it; then records that have to go. */
	tgt_cluster_reconcile(s);
	tgt_cluster_ccr_reconcile(s);
}

/* It may lack a namespace that others have. */
static void on_store_node_joined(void *arg, unsigned node)
{
	(void)node;
	tgt_cluster_reconcile(arg);
}

static void on_storage_released(void *arg)
{
	tgt_cluster_storage_released(arg);
}

/* Another member may serve our groups by now. A process that starts again can find out who lives;
 * this one cannot. */
static void on_membership_lost(void *arg, const char *why)
{
	struct weft_subsys *s = arg;

	weft_error("%s: %s: %s. It serves nothing of %s any more; start it again when locks are "
		   "shared by all members",
		   s->nqn, weft_store_spec(s->store), why, s->nqn);
	tgt_ana_persistent_loss_all(s);
	tgt_cluster_membership_lost(s);
}

void tgt_store_consumed(struct weft_subsys *s, enum tgt_store_consumer who, uint64_t revision)
{
	uint64_t least = revision;

	assert_on_control(s->target);
	assert(who < TGT_CONSUMERS);
	s->consumed[who] = revision;
	for (int i = 0; i < TGT_CONSUMERS; i++)
		if (s->consumed[i] < least)
			least = s->consumed[i];
	weft_store_ack(s->store, least);
}

/* A subsystem without a state file keeps the same records in memory. */
static int subsys_open_store(struct weft_subsys *s, struct weft_store *store, struct weft_err *err)
{
	const struct weft_store_options options = { s->target->control, "mem", 1, 1,
						    tgt_store_is_frozen(s->target) };
	const struct weft_store_watcher watcher = { .changed = on_store_moved,
						    .gone = on_store_node_gone,
						    .joined = on_store_node_joined,
						    .file_closed = on_storage_released,
						    .lost = on_membership_lost,
						    .arg = s };
	int rc = 0;

	s->store = store;
	if (!store)
		rc = weft_store_open(&s->store, &options, err);
	if (rc < 0)
		return rc;
	rc = tgt_resv_start(s);
	if (rc == 0)
		weft_store_watch(s->store, &watcher);
	if (rc < 0 && !store)
		weft_store_close(s->store, ignore_store_closed, NULL);
	return rc;
}

static int check_text(const char *what, const char *text, size_t most, struct weft_err *err)
{
	if (!text)
		return 0;
	if (!text[0] || strlen(text) > most)
		return weft_fail(err, -EINVAL, "%s \"%s\": expected 1 to %zu characters", what,
				 text, most);
	for (const char *c = text; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			return weft_fail(err, -EINVAL, "%s: expected printable ASCII", what);
	return 0;
}

int weft_subsys_add(struct weft_target *t, const struct weft_subsys_options *options,
		    struct weft_subsys **out, struct weft_err *err)
{
	struct weft_subsys *s;
	int rc = weft_subnqn_check(options->nqn, err);

	assert_on_control(t);
	if (rc == 0)
		rc = check_text("serial", options->serial, sizeof(s->serial) - 1, err);
	if (rc == 0)
		rc = check_text("model", options->model, sizeof(s->model) - 1, err);
	if (rc == 0)
		rc = tgt_ana_rules_check(options->ana, options->nana, err);
	if (rc < 0)
		return rc;
	if (!strcmp(options->nqn, NVME_NQN_DISCOVERY))
		return weft_fail(err, -EINVAL, "%s is the discovery service", options->nqn);
	if (weft_subsys_find(t, options->nqn))
		return weft_fail(err, -EEXIST, "subsystem %s exists already", options->nqn);
	s = tgt_subsys_new(t, options);
	if (!s)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = tgt_cluster_new(s, options);
	if (rc == 0)
		rc = subsys_open_store(s, options->store, err);
	if (rc < 0) {
		subsys_free(s);
		return weft_fail(err, rc, "out of memory");
	}
	weft_list_push(&t->subsystems, &s->link);
	tgt_discovery_changed(t);
	*out = s;
	return 0;
}

/* --- removing: controllers first, then namespaces, then its state, then itself ---------------- */

static void subsys_store_closed(void *arg)
{
	struct weft_subsys *s = arg;
	struct weft_target *t = s->target;
	void (*removed)(void *arg) = s->removed;
	void *removed_arg = s->removed_arg;

	assert_on_control(t);
	assert(s->removing);
	weft_list_remove(&s->link);
	if (s->discovery)
		t->discovery = NULL;
	subsys_free(s);
	removed(removed_arg);
	tgt_target_teardown_done(t);
}

static void close_store(struct weft_subsys *s)
{
	weft_store_close(s->store, subsys_store_closed, s);
}

void tgt_subsys_namespaces_closed(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->store)
		tgt_resv_stop(s, close_store);
	else
		subsys_store_closed(s);
}

void tgt_subsys_ctrl_gone(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->removing && weft_list_empty(&s->ctrls) && !s->ana.next)
		tgt_ns_close_all(s);
	else
		tgt_cluster_ccr_reconcile(s);
}

void weft_subsys_remove(struct weft_subsys *s, void (*done)(void *arg), void *arg)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	assert(!s->removing);
	s->removing = true;
	s->removed = done;
	s->removed_arg = arg;
	s->target->teardowns++;
	tgt_discovery_changed(s->target);
	tgt_ana_cancel_waiting(s);
	weft_list_for_each(ctrl, &s->ctrls, link)
		tgt_ctrl_kill(ctrl, "subsystem removed");
	tgt_subsys_ctrl_gone(s);
}

/* --- hosts ------------------------------------------------------------------------------------ */

static struct tgt_host *find_host(const struct weft_subsys *s, const char *hostnqn)
{
	struct tgt_host *host;

	assert_on_control(s->target);
	weft_list_for_each(host, &s->hosts, link)
		if (!strcmp(host->nqn, hostnqn))
			return host;
	return NULL;
}

bool tgt_host_listed(const struct weft_subsys *s, const char *hostnqn)
{
	return find_host(s, hostnqn);
}

bool tgt_any_host_listed(const struct weft_target *t)
{
	struct weft_subsys *s;

	weft_list_for_each(s, &t->subsystems, link)
		if (!weft_list_empty(&s->hosts))
			return true;
	return false;
}

bool tgt_host_allowed(const struct weft_subsys *s, const char *hostnqn)
{
	return s->allow_any_host || tgt_host_listed(s, hostnqn);
}

void weft_subsys_hosts_changed(struct weft_subsys *s)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	weft_list_for_each(ctrl, &s->ctrls, link)
		if (!tgt_host_allowed(s, ctrl->hostnqn))
			tgt_ctrl_kill(ctrl, "host no longer allowed");
	tgt_discovery_changed(s->target);
}

void weft_subsys_set_any_host(struct weft_subsys *s, bool allow)
{
	assert_on_control(s->target);
	s->allow_any_host = allow;
	weft_subsys_hosts_changed(s);
}

int weft_subsys_allow(struct weft_subsys *s, const char *hostnqn, struct weft_err *err)
{
	struct tgt_host *host;
	int rc = weft_nqn_check(hostnqn, err);

	assert_on_control(s->target);
	if (rc < 0)
		return rc;
	if (find_host(s, hostnqn))
		return weft_fail(err, -EEXIST, "host %s is allowed already", hostnqn);
	host = malloc(sizeof(*host) + strlen(hostnqn) + 1);
	if (!host)
		return weft_fail(err, -ENOMEM, "out of memory");
	strcpy(host->nqn, hostnqn);
	weft_list_push(&s->hosts, &host->link);
	tgt_discovery_changed(s->target);
	return 0;
}

int weft_subsys_refuse(struct weft_subsys *s, const char *hostnqn, struct weft_err *err)
{
	struct tgt_host *host = find_host(s, hostnqn);

	assert_on_control(s->target);
	if (!host)
		return weft_fail(err, -ENOENT, "host %s is not on the list of %s", hostnqn, s->nqn);
	weft_list_remove(&host->link);
	free(host);
	weft_subsys_hosts_changed(s);
	return 0;
}
