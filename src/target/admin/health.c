/* health.c - health of a subsystem: Critical Warning in the SMART log, and an event when it gets
 * worse.
 *
 * After a failed sync, written data may be lost, and nothing becomes durable until the storage is
 * opened again (backend/disk.c). It can still be read and written, so it is not read-only: its
 * reliability is degraded. Errors of single blocks are counted, and are no warning. */
#include "target/admin/admin.h"

static bool sync_failed(const struct tgt_ns *ns)
{
	return atomic_load(&weft_backend_storage(ns->be)->sync_failed);
}

static bool is_degraded(struct weft_subsys *s)
{
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		const struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns && sync_failed(ns))
			return true;
	}
	return false;
}

uint8_t tgt_health_warnings(struct weft_subsys *s)
{
	assert_on_control(s->target);
	return is_degraded(s) ? NVME_SMART_CRIT_DEGRADED : 0;
}

void tgt_health_update(struct weft_subsys *s)
{
	bool was = s->degraded;
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	s->degraded = is_degraded(s);
	if (was || !s->degraded)
		return;
	weft_list_for_each(ctrl, &s->ctrls, link)
		tgt_event_raise(ctrl, TGT_EVENT_HEALTH);
}

/* Costs the check of one namespace, however many commands fail after the first. */
void tgt_health_command_failed(struct weft_subsys *s, uint32_t nsid)
{
	const struct tgt_ns *ns = tgt_ns_find(s, nsid);

	assert_on_control(s->target);
	if (ns && !s->degraded && sync_failed(ns))
		tgt_health_update(s);
}
