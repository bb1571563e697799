/* store.c - what all types of stores have in common: our copy, the watcher, the wait for all
 * members. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"

static const struct weft_store_ops *const store_types[] = { &store_file_ops, &store_mem_ops };

static void complete_settled_waits(struct weft_task *task);

static const struct weft_store_ops *find_store_type(const char *spec, const char **arg)
{
	for (size_t i = 0; i < sizeof(store_types) / sizeof(store_types[0]); i++) {
		size_t len = strlen(store_types[i]->type);

		if (strncmp(spec, store_types[i]->type, len) || (spec[len] && spec[len] != ':'))
			continue;
		*arg = spec[len] ? spec + len + 1 : "";
		return store_types[i];
	}
	return NULL;
}

int store_create(struct weft_store **out, const struct weft_store_options *options,
		 struct weft_err *err)
{
	const struct weft_store_ops *ops;
	_cleanup_(weft_freep) char *spec = NULL;
	struct weft_store *store;
	const char *arg;

	assert_on(options->control_reactor);
	assert(options->node && options->node <= options->nodes &&
	       options->nodes <= WEFT_STORE_NODES_MAX);
	ops = find_store_type(options->spec, &arg);
	if (!ops)
		return weft_fail(err, -EINVAL, "%s: expected file:PATH", options->spec);
	spec = strdup(options->spec);
	if (!spec || ops->create(&store, arg) < 0)
		return weft_fail(err, -ENOMEM, "out of memory");
	assert(store->ops == ops && store->records);
	store->spec = take_ptr(&spec);
	store->control_reactor = options->control_reactor;
	store->node = options->node;
	store->nodes = options->nodes;
	store->frozen = options->successor;
	weft_list_init(&store->waits);
	weft_task_init(&store->settle_task, complete_settled_waits);
	*out = store;
	return 0;
}

void weft_store_watch(struct weft_store *store, const struct weft_store_watcher *watcher)
{
	assert_on(store->control_reactor);
	assert(!store->closed);
	store->watcher = *watcher;
}

void weft_store_watch_file(struct weft_store *store, int fd)
{
	assert_on(store->control_reactor);
	if (store->ops->watch_file)
		store->ops->watch_file(store, fd);
}

void store_file_closed(struct weft_store *store)
{
	assert_on(store->control_reactor);
	if (store->watcher.file_closed)
		store->watcher.file_closed(store->watcher.arg);
}

/* --- the copy --------------------------------------------------------------------------------- */

uint64_t weft_store_revision(const struct weft_store *store)
{
	return store->records->revision;
}

uint64_t weft_store_session(const struct weft_store *store)
{
	return store->records->session;
}

bool weft_store_persistent(const struct weft_store *store)
{
	return store->ops->persistent;
}

const char *weft_store_spec(const struct weft_store *store)
{
	return store->spec;
}

bool weft_store_on_shared_fs(const struct weft_store *store)
{
	return store->ops->on_shared_fs && store->ops->on_shared_fs(store);
}

const struct weft_store_record *weft_store_get(const struct weft_store *store, const char *key)
{
	assert_on(store->control_reactor);
	return store_records_find(store->records, key);
}

const struct weft_store_record *weft_store_next(const struct weft_store *store, const char *key)
{
	assert_on(store->control_reactor);
	return store_records_next(store->records, key);
}

void store_records_changed(struct weft_store *store, struct store_records *records)
{
	assert_on(store->control_reactor);
	assert(records->revision > store->records->revision);
	store_records_free(store->records);
	store->records = records;
	if (store->watcher.changed)
		store->watcher.changed(store->watcher.arg);
}

static void assert_valid_write(const struct weft_store_write *write)
{
	size_t key_len = strlen(write->key);

	assert(key_len && key_len <= WEFT_STORE_KEY_MAX);
	assert(write->len <= WEFT_STORE_VALUE_MAX);
	assert(write->value || !write->len);
}

void weft_store_commit(struct weft_store *store, struct weft_store_txn *txn)
{
	assert_on(store->control_reactor);
	assert(!store->closed);
	for (unsigned i = 0; i < txn->nwrites; i++)
		assert_valid_write(&txn->writes[i]);
	txn->in_doubt = false;
	store->ops->commit(store, txn);
}

/* --- members ---------------------------------------------------------------------------------- */

bool weft_store_alive(const struct weft_store *store, unsigned node)
{
	assert_on(store->control_reactor);
	assert(node <= WEFT_STORE_NODES_MAX);
	return node == store->node || store->members[node].alive;
}

bool weft_store_is_lost(const struct weft_store *store)
{
	return store->lost;
}

uint64_t weft_store_settled_revision(const struct weft_store *store)
{
	uint64_t least = store->acked;

	for (unsigned node = 1; node <= store->nodes; node++) {
		const struct store_member *member = &store->members[node];

		if (member->alive && member->acked < least)
			least = member->acked;
	}
	return least;
}

int weft_store_agree(struct weft_store *store, unsigned topic, uint64_t as)
{
	assert_on(store->control_reactor);
	assert(topic < WEFT_STORE_TOPICS_MAX);
	return store->ops->agree ? store->ops->agree(store, topic, as) : 0;
}

void weft_store_agree_end(struct weft_store *store, unsigned topic)
{
	assert_on(store->control_reactor);
	assert(topic < WEFT_STORE_TOPICS_MAX);
	if (store->ops->agree_end)
		store->ops->agree_end(store, topic);
}

static void complete_settled_waits(struct weft_task *task)
{
	struct weft_store *store = container_of(task, struct weft_store, settle_task);
	uint64_t settled = store->lost ? UINT64_MAX : weft_store_settled_revision(store);
	struct weft_store_wait *wait, *tmp;
	struct weft_list settled_waits;

	weft_list_init(&settled_waits);
	weft_list_for_each_safe(wait, tmp, &store->waits, link) {
		if (wait->revision > settled)
			continue;
		weft_list_remove(&wait->link);
		weft_list_push(&settled_waits, &wait->link);
	}
	while (!weft_list_empty(&settled_waits)) {
		wait = container_of(weft_list_pop(&settled_waits), struct weft_store_wait, link);
		wait->done(wait, store->lost ? -EOWNERDEAD : 0);
	}
}

void weft_store_ack(struct weft_store *store, uint64_t revision)
{
	assert_on(store->control_reactor);
	assert(revision <= weft_store_revision(store));
	if (revision <= store->acked || store->lost)
		return;
	store->acked = revision;
	store->ops->acked(store);
	weft_reactor_defer(store->control_reactor, &store->settle_task);
}

void weft_store_wait_settled(struct weft_store *store, struct weft_store_wait *wait)
{
	assert_on(store->control_reactor);
	assert(!store->closed);
	weft_list_push(&store->waits, &wait->link);
	weft_reactor_defer(store->control_reactor, &store->settle_task);
}

void weft_store_wait_cancel(struct weft_store_wait *wait)
{
	weft_list_remove(&wait->link);
}

/* A record that cannot be read says nothing about its writer. */
static struct store_member merge_seen(const struct store_member *was, const struct store_member *is)
{
	struct store_member now = *is;

	if (was->alive && is->alive && !is->incarnation)
		now.incarnation = was->incarnation;
	return now;
}

/* A member with another incarnation was gone between two scans. */
static bool has_gone(const struct store_member *was, const struct store_member *is)
{
	return was->alive && (!is->alive || is->incarnation != was->incarnation);
}

static bool has_joined(const struct store_member *was, const struct store_member *is)
{
	return is->alive && (!was->alive || is->incarnation != was->incarnation);
}

static void notify_of_members(struct weft_store *store, const struct store_member *was)
{
	const struct weft_store_watcher *watcher = &store->watcher;

	for (unsigned node = 1; node <= store->nodes; node++)
		if (has_gone(&was[node], &store->members[node]) && watcher->gone)
			watcher->gone(watcher->arg, node);
	for (unsigned node = 1; node <= store->nodes; node++)
		if (has_joined(&was[node], &store->members[node]) && watcher->joined)
			watcher->joined(watcher->arg, node);
}

void store_members_update(struct weft_store *store, const struct store_member *members)
{
	struct store_member was[WEFT_STORE_NODES_MAX + 1];

	assert_on(store->control_reactor);
	assert(!members[store->node].alive);
	if (store->lost)
		return;
	memcpy(was, store->members, sizeof(was));
	for (unsigned node = 1; node <= store->nodes; node++)
		store->members[node] = merge_seen(&was[node], &members[node]);
	notify_of_members(store, was);
	weft_reactor_defer(store->control_reactor, &store->settle_task);
}

void weft_store_set_lost(struct weft_store *store, const char *why)
{
	assert_on(store->control_reactor);
	if (store->lost || !store->ops->leave)
		return;
	store->lost = true;
	store->ops->leave(store);
	weft_reactor_defer(store->control_reactor, &store->settle_task);
	if (store->watcher.lost)
		store->watcher.lost(store->watcher.arg, why);
}

/* --- close ------------------------------------------------------------------------------------ */

static void cancel_waits(struct weft_store *store)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&store->waits))) {
		struct weft_store_wait *wait = container_of(link, struct weft_store_wait, link);

		wait->done(wait, -ECANCELED);
	}
}

void weft_store_close(struct weft_store *store, void (*done)(void *arg), void *arg)
{
	assert_on(store->control_reactor);
	assert(!store->closed);
	store->watcher = (struct weft_store_watcher){ 0 };
	store->closed = done;
	store->closed_arg = arg;
	store->ops->close(store);
}

void store_closed(struct weft_store *store)
{
	void (*closed)(void *arg) = store->closed;
	void *arg = store->closed_arg;

	assert(closed);
	cancel_waits(store);
	weft_task_cancel(&store->settle_task);
	store_records_free(store->records);
	free(store->spec);
	free(store);
	closed(arg);
}
