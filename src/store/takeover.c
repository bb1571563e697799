/* takeover.c - freeze a store, export it, and import it in the successor.
 *
 * Exported are the records, our acknowledged revision, the members we know, and the descriptor
 * that holds our lock. The lock is never released: other members see no change. Their commits
 * wait for our acknowledgement until one of the two processes thaws.
 *
 * Invariant: both processes hold the descriptor and its locks for a while; a frozen one does not
 * touch the file. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/internal.h"

void weft_store_freeze(struct weft_store *store)
{
	assert_on(store->control_reactor);
	assert(!store->frozen);
	store->frozen = true;
}

bool weft_store_is_quiesced(const struct weft_store *store)
{
	return store->frozen && weft_list_empty(&store->waits) && store->ops->is_quiesced(store);
}

void weft_store_thaw(struct weft_store *store)
{
	assert_on(store->control_reactor);
	assert(store->frozen && !store->closed);
	store->frozen = false;
	store->ops->thawed(store);
}

/* --- export ----------------------------------------------------------------------------------- */

static int export_members(const struct weft_store *store, struct weft_items *items)
{
	struct weft_store_member_state *to = calloc(store->nodes, sizeof(*to));

	items->at = to;
	if (!to)
		return -ENOMEM;
	for (unsigned node = 1; node <= store->nodes; node++) {
		const struct store_member *member = &store->members[node];

		assert(!member->alive || node != store->node);
		if (member->alive)
			to[items->count++] = (struct weft_store_member_state){ node,
									       member->incarnation,
									       member->acked };
	}
	return 0;
}

static int export_records(const struct weft_store *store, struct weft_items *items)
{
	size_t size = store_records_size(store->records);

	items->at = size <= UINT32_MAX ? malloc(size + 1) : NULL;
	if (!items->at)
		return -ENOMEM;
	store_records_encode(store->records, items->at);
	items->count = (unsigned)size;
	return 0;
}

int weft_store_export(const struct weft_store *store, struct weft_store_state *state)
{
	int rc;

	assert(weft_store_is_quiesced(store));
	*state = (struct weft_store_state){
		.revision = store->records->revision,
		.session = store->records->session,
		.nodes = store->records->nodes,
		.acked = store->acked,
		.fd = -1,
	};
	if (store->ops->export)
		store->ops->export(store, state);
	rc = export_members(store, &state->members);
	return rc < 0 ? rc : export_records(store, &state->records);
}

void weft_store_state_free(struct weft_store_state *state)
{
	free(state->members.at);
	free(state->records.at);
}

/* --- import ----------------------------------------------------------------------------------- */

static bool are_valid_members(const struct weft_store *store, const struct weft_items *items)
{
	const struct weft_store_member_state *from = items->at;

	for (unsigned i = 0; i < items->count; i++)
		if (!from[i].node || from[i].node > store->nodes || from[i].node == store->node)
			return false;
	return true;
}

static bool is_valid_state(const struct weft_store *store, const struct weft_store_state *state)
{
	return state->revision && state->acked <= state->revision && state->nodes == store->nodes &&
	       state->has_fd == !!store->ops->import && are_valid_members(store, &state->members);
}

static int import_records(struct weft_store *store, const struct weft_store_state *state)
{
	struct store_records *records = store_records_new(state->revision, state->session,
							  state->nodes);
	int rc;

	if (!records)
		return -ENOMEM;
	rc = store_records_decode(records, state->records.at, state->records.count);
	if (rc < 0) {
		store_records_free(records);
		return rc;
	}
	store_records_free(store->records);
	store->records = records;
	return 0;
}

static void import_members(struct weft_store *store, const struct weft_store_state *state)
{
	const struct weft_store_member_state *from = state->members.at;

	for (unsigned i = 0; i < state->members.count; i++)
		store->members[from[i].node] = (struct store_member){ true, from[i].incarnation,
								      from[i].acked };
	store->acked = state->acked;
}

static int import_state(struct weft_store *store, struct weft_store_state *state,
			struct weft_err *err)
{
	int rc = is_valid_state(store, state) ? import_records(store, state) : -EINVAL;

	if (!rc && store->ops->import)
		rc = store->ops->import(store, state, err);
	if (!rc)
		import_members(store, state);
	return rc;
}

int weft_store_import(struct weft_store *store, struct weft_store_state *state,
		      struct weft_err *err)
{
	int rc;

	assert_on(store->control_reactor);
	assert(store->frozen && !store->acked && weft_list_empty(&store->waits));
	rc = import_state(store, state, err);
	weft_closep(&state->fd);
	state->fd = -1;
	if (rc == -EBUSY)
		return weft_fail(err, rc, "%s: somebody else is node %u", store->spec, store->node);
	if (rc == -EIDRM)
		return weft_fail(err, rc,
				 "%s: that is not the file that the running target has; a relative "
				 "path counts from where a target is started",
				 store->spec);
	return rc < 0 ? weft_fail(err, rc, "%s: what was handed over cannot be its state",
				  store->spec) :
			0;
}
