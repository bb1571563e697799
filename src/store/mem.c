/* mem.c - a store in memory, of this process alone, for subsystems whose state need not outlive it.
 *
 * With it all code that changes state does so in one way: by a commit to a store. A commit is done
 * at the end of the turn, because a callback must not run inside the call. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "store/internal.h"

struct mem_store {
	struct weft_store store;
	struct weft_list txns;
	struct weft_task commit;
};

static struct mem_store *mem_of(struct weft_store *store)
{
	return container_of(store, struct mem_store, store);
}

/* Into *@next, which earlier transactions may have made. */
static void mem_apply_txn(struct store_records **next, const struct mem_store *mem,
			  struct weft_store_txn *txn)
{
	const struct store_records *now = mem->store.records, *from = *next ? *next : now;
	struct store_records *made = store_records_apply(from, now->revision + 1, txn, &txn->rc);

	if (made && *next)
		store_records_free(*next);
	*next = made ? made : *next;
	txn->revision = now->revision + 1;
}

/* One revision for all commits of this turn; commits from their callbacks wait for the next
 * turn. */
static void mem_commit_txns(struct weft_task *task)
{
	struct mem_store *mem = container_of(task, struct mem_store, commit);
	struct store_records *next = NULL;
	struct weft_list txns, *link;
	struct weft_store_txn *txn;

	assert_on(mem->store.control_reactor);
	if (mem->store.frozen)
		return;
	weft_list_init(&txns);
	weft_list_splice(&txns, &mem->txns);
	weft_list_for_each(txn, &txns, link)
		mem_apply_txn(&next, mem, txn);
	if (next)
		store_records_changed(&mem->store, next);
	while ((link = weft_list_pop(&txns))) {
		txn = container_of(link, struct weft_store_txn, link);
		txn->done(txn, txn->rc);
	}
}

static void mem_commit(struct weft_store *store, struct weft_store_txn *txn)
{
	weft_list_push(&mem_of(store)->txns, &txn->link);
	weft_reactor_defer(store->control_reactor, &mem_of(store)->commit);
}

static void mem_acked(struct weft_store *store)
{
	(void)store; /* there are no other members */
}

static bool mem_is_quiesced(const struct weft_store *store)
{
	return weft_list_empty(&container_of(store, struct mem_store, store)->txns);
}

static void mem_thawed(struct weft_store *store)
{
	weft_reactor_defer(store->control_reactor, &mem_of(store)->commit);
}

static void mem_close(struct weft_store *store)
{
	struct weft_list *link;

	assert(store->nodes == 1);
	weft_task_cancel(&mem_of(store)->commit);
	while ((link = weft_list_pop(&mem_of(store)->txns))) {
		struct weft_store_txn *txn = container_of(link, struct weft_store_txn, link);

		txn->done(txn, -ECANCELED);
	}
	store_closed(store);
}

static int mem_create(struct weft_store **store, const char *arg)
{
	struct mem_store *mem = calloc(1, sizeof(*mem));

	(void)arg;
	if (mem)
		mem->store.records = store_records_new(1, 1, 1);
	if (!mem || !mem->store.records) {
		free(mem);
		return -ENOMEM;
	}
	mem->store.ops = &store_mem_ops;
	weft_list_init(&mem->txns);
	weft_task_init(&mem->commit, mem_commit_txns);
	*store = &mem->store;
	return 0;
}

const struct weft_store_ops store_mem_ops = {
	.type = "mem",
	.create = mem_create,
	.commit = mem_commit,
	.acked = mem_acked,
	.is_quiesced = mem_is_quiesced,
	.thawed = mem_thawed,
	.close = mem_close,
};
