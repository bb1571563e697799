/* sweep.c - sweep: remove reservation records that say nothing and whose namespace does not exist
 * here.
 *
 * Records with registrants or persistence stay, because the namespace may come back. While other
 * members live all records stay: the namespace may be theirs, and their hosts know its generation
 * and may not have its notices yet. A removed record means the same as none.
 *
 * If somebody writes one of the records meanwhile, the commit fails and the sweep is skipped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "target/resv/resv.h"

static const char prefix[] = "resv/";

struct sweep {
	struct weft_store_txn txn;
	struct weft_subsys *subsys;
	unsigned n, room;
	struct weft_store_write *writes;
	char (*keys)[TGT_RESV_KEY];
};

static void sweep_free(struct sweep *sweep)
{
	free(sweep->writes);
	free(sweep->keys);
	free(sweep);
}

static void sweep_committed(struct weft_store_txn *txn, int rc)
{
	struct sweep *sweep = container_of(txn, struct sweep, txn);

	if (rc < 0 && rc != -ESTALE && rc != -ECANCELED && rc != -EOWNERDEAD)
		weft_warn("%s: %u reservation%s of the past cannot leave its state: %s",
			  sweep->subsys->nqn, sweep->n, weft_plural(sweep->n), strerror(-rc));
	sweep_free(sweep);
}

/* --- which records ---------------------------------------------------------------------------- */

static const struct weft_store_record *next_resv_record(struct weft_store *store, const char *key)
{
	const struct weft_store_record *record = weft_store_next(store, key);

	return record && !strncmp(record->key, prefix, strlen(prefix)) ? record : NULL;
}

static bool ns_is_present(struct weft_subsys *s, const char *key)
{
	char its[TGT_RESV_KEY];

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (!ns)
			continue;
		tgt_resv_key(ns, its);
		if (!strcmp(its, key))
			return true;
	}
	return false;
}

static bool record_is_empty(struct weft_store *store, const struct weft_store_record *record)
{
	struct resv_state st;
	int rc = resv_record_decode(&st, weft_store_session(store), record->value, record->len);

	return !rc && !st.nregs && !st.ptpl;
}

static int sweep_add(struct sweep *sweep, const struct weft_store_record *record)
{
	unsigned room = sweep->n == sweep->room ? 2 * sweep->room + 8 : sweep->room;
	void *writes = reallocarray(sweep->writes, room, sizeof(*sweep->writes));
	void *keys;

	if (!writes)
		return -ENOMEM;
	sweep->writes = writes;
	keys = reallocarray(sweep->keys, room, sizeof(*sweep->keys));
	if (!keys)
		return -ENOMEM;
	sweep->keys = keys;
	sweep->room = room;
	strcpy(sweep->keys[sweep->n], record->key);
	sweep->writes[sweep->n++] = (struct weft_store_write){ .version = record->version };
	return 0;
}

static int sweep_collect(struct sweep *sweep)
{
	struct weft_subsys *s = sweep->subsys;
	const struct weft_store_record *record;
	int rc = 0;

	for (record = next_resv_record(s->store, prefix); record && !rc;
	     record = next_resv_record(s->store, record->key))
		if (strlen(record->key) < TGT_RESV_KEY && !ns_is_present(s, record->key) &&
		    record_is_empty(s->store, record))
			rc = sweep_add(sweep, record);
	for (unsigned i = 0; i < sweep->n; i++)
		sweep->writes[i].key = sweep->keys[i]; /* which does not move any more */
	return rc;
}

static uint64_t other_nodes(const struct weft_subsys *s)
{
	unsigned node = weft_subsys_node(s);

	return node ? ~(1ull << (node - 1)) : 0;
}

void tgt_resv_sweep(struct weft_subsys *s)
{
	struct sweep *sweep = tgt_store_is_frozen(s->target) ? NULL : calloc(1, sizeof(*sweep));

	assert_on_control(s->target);
	if (!sweep)
		return;
	sweep->subsys = s;
	if (sweep_collect(sweep) < 0 || !sweep->n) {
		sweep_free(sweep);
		return;
	}
	sweep->txn = (struct weft_store_txn){ sweep->writes, sweep->n, sweep_committed,
					      other_nodes(s) };
	weft_store_commit(s->store, &sweep->txn);
}
