/* store.c - takeover of the store that a subsystem shares with other processes.
 *
 * The store is exported with the descriptor that makes us a member, so other members see no change.
 * It has the reservations, also where no other process uses it. Of a cluster's groups, those that
 * are served here are exported, not the owner table: the table may be newer, and the successor acts
 * by it when it is thawed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/cluster/cluster.h"
#include "target/takeover/parts.h"
#include "target/resv/resv.h"

enum { GROUP_BYTES = WEFT_ANA_GROUP_MAX / 8 };

/* --- export ----------------------------------------------------------------------------------- */

static int export_cluster(struct weft_subsys_state *state, const struct weft_subsys *s)
{
	const bool *elsewhere = s->ana.rules->elsewhere;
	uint8_t *bits = calloc(1, GROUP_BYTES);

	if (!bits)
		return -ENOMEM;
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		bits[i / 8] |= (uint8_t)(elsewhere[i] << i % 8);
	state->elsewhere = (struct weft_items){ bits, s->cluster ? GROUP_BYTES : 0 };
	state->draining = s->cluster && s->cluster->draining;
	return 0;
}

int tgt_store_export(struct weft_subsys_state *state, const struct weft_subsys *s)
{
	int rc = export_cluster(state, s);

	assert_on_control(s->target);
	assert(tgt_store_is_frozen(s->target));
	state->store.fd = -1;
	return rc < 0 || !s->store ? rc : weft_store_export(s->store, &state->store);
}

void tgt_store_free_state(struct weft_subsys_state *state)
{
	free(state->elsewhere.at);
	weft_store_state_free(&state->store);
}

/* --- import ----------------------------------------------------------------------------------- */

static int import_cluster(const struct weft_subsys_state *state, struct weft_subsys *s,
			  struct weft_err *err)
{
	const uint8_t *bits = state->elsewhere.at;

	if (state->elsewhere.count != (s->cluster ? GROUP_BYTES : 0))
		return weft_fail(err, -EINVAL, "%s: the groups that are served cannot be its own",
				 s->nqn);
	for (unsigned i = 0; i < state->elsewhere.count * 8; i++)
		s->ana.rules->elsewhere[i] = bits[i / 8] >> i % 8 & 1;
	if (s->cluster)
		s->cluster->draining = state->draining;
	return 0;
}

/* The old process has notified hosts of everything in the store. */
static int import_reservations(struct weft_subsys *s, struct weft_err *err)
{
	int rc = 0;

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX && !rc; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		rc = ns ? tgt_resv_load(ns) : 0;
		if (rc < 0)
			weft_fail(err, rc, "%s namespace %u: its reservation cannot be read",
				  s->nqn, nsid);
	}
	return rc;
}

int tgt_store_import(struct weft_subsys_state *state, struct weft_subsys *s, struct weft_err *err)
{
	int rc = import_cluster(state, s, err);

	assert_on_control(s->target);
	assert(tgt_store_is_frozen(s->target));
	if (rc < 0 || !s->store)
		return rc;
	rc = weft_store_import(s->store, &state->store, err);
	if (rc == 0 && s->cluster)
		tgt_cluster_ports_mark_seen(s->cluster);
	return rc < 0 ? rc : import_reservations(s, err);
}
