/* ana.c - asymmetric namespace access (ANA): the state in which a path's controller has each group.
 *
 *   set-up ─▶ read the log page ─▶ groups ─▶ access.c
 *               ▲ ▲ ▲
 *               │ │ └ an event says that it changed; meanwhile I/O without another path tries
 *               │ └ a command failed with an ANA status, and the page showed another state
 *               └ a group is in change: once a second, for as long as a change may take (ANATT)
 *
 *   IDLE ─┬────────▶ READING ─ asked for meanwhile ─▶ REREAD
 *     ▲   └─▶ DUE ────▲ └──── read, or lost ────────────┘
 *     └───────────────────────────┘
 *
 * I/O may wait for the page, so it is read at once, within the rate limit. Commands that are
 * refused while a change lasts do not cost a read each. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

enum {
	LSP_SHIFT = 8, /* in CDW10 */
	GROUPS_MAX = 4096,
	CHANGE_MS = 1000, /* between two reads while a group is in change */
	SECOND_MS = 1000,
};

static_assert(sizeof(struct nvme_ana_log) == 16, "header of the ANA log");
static_assert(sizeof(struct nvme_ana_group_desc) == 32, "ANA group descriptor");

/* States that may come before. */
static const unsigned edges[] = {
	[HOST_ANA_IDLE] = 1u << HOST_ANA_DUE | 1u << HOST_ANA_READING | 1u << HOST_ANA_REREAD,
	[HOST_ANA_DUE] = 1u << HOST_ANA_IDLE | 1u << HOST_ANA_DUE,
	[HOST_ANA_READING] = 1u << HOST_ANA_IDLE | 1u << HOST_ANA_DUE | 1u << HOST_ANA_REREAD,
	[HOST_ANA_REREAD] = 1u << HOST_ANA_READING,
};

static void ana_enter(struct host_ana *ana, enum host_ana_reading state)
{
	assert(edges[state] & 1u << ana->state);
	ana->state = state;
}

/* --- what the page says ----------------------------------------------------------------------- */

static bool is_known_ana_state(uint8_t state)
{
	return (state >= NVME_ANA_STATE_OPTIMIZED && state <= NVME_ANA_STATE_PERSISTENT_LOSS) ||
	       state == NVME_ANA_STATE_CHANGE;
}

/* An unknown state counts as inaccessible. */
static uint8_t ana_state_of_desc(const struct nvme_ana_group_desc *desc)
{
	uint8_t state = desc->state & 0xf;

	return is_known_ana_state(state) ? state : NVME_ANA_STATE_INACCESSIBLE;
}

/* Fills @groups, which has room for all that fit into the page. Returns how many, or -EPROTO. */
static int parse_ana_log(const char *page, size_t size, struct host_ana_group *groups)
{
	const struct nvme_ana_log *log = (const struct nvme_ana_log *)page;
	size_t at = sizeof(*log);
	int n = 0;

	for (unsigned left = le16_to_cpu(log->ngrps); left; left--, n++) {
		struct nvme_ana_group_desc desc; /* in the page it need not be aligned */
		uint64_t nsids;

		if (size - at < sizeof(desc))
			return -EPROTO;
		memcpy(&desc, page + at, sizeof(desc));
		at += sizeof(desc);
		groups[n] = (struct host_ana_group){ le32_to_cpu(desc.grpid),
						     ana_state_of_desc(&desc) };
		nsids = (uint64_t)le32_to_cpu(desc.nnsids) * sizeof(desc.nsids[0]);
		if (size - at < nsids)
			return -EPROTO;
		at += nsids;
	}
	return n;
}

static int by_id(const void *a, const void *b)
{
	const struct host_ana_group *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static const struct host_ana_group *find_ana_group(const struct host_ana *ana, uint32_t id)
{
	const struct host_ana_group wanted = { .id = id };

	return bsearch(&wanted, ana->groups, ana->ngroups, sizeof(wanted), by_id);
}

uint8_t host_ana_state(const struct host_path *path, uint32_t group)
{
	const struct host_ana_group *found;

	assert_locked(&path->ctrl->lock);
	if (!path->ana.groups || !group)
		return NVME_ANA_STATE_OPTIMIZED;
	found = find_ana_group(&path->ana, group);
	return found ? found->state : NVME_ANA_STATE_INACCESSIBLE;
}

/* --- a change that does not end --------------------------------------------------------------- */

static bool any_changes(const struct host_ana *ana)
{
	for (unsigned i = 0; i < ana->ngroups; i++)
		if (ana->groups[i].state == NVME_ANA_STATE_CHANGE)
			return true;
	return false;
}

static void check_anatt(struct host_path *path)
{
	struct host_ana *ana = &path->ana;
	uint64_t now = weft_reactor_now_ns(path->reactor);

	assert_on(path->reactor);
	if (!any_changes(ana)) {
		ana->change_ns = 0;
		return;
	}
	if (!ana->change_ns)
		ana->change_ns = now;
	if ((now - ana->change_ns) / 1000000 > (uint64_t)path->assoc.traits.anatt_s * SECOND_MS)
		host_path_broken(path, -ETIMEDOUT,
				 "a change of asymmetric access took longer than %u s (ANATT)",
				 path->assoc.traits.anatt_s);
	else if (!weft_heap_has(&ana->timer.node))
		weft_timer_set(path->reactor, &ana->timer, CHANGE_MS);
}

/* --- reading it ------------------------------------------------------------------------------- */

static int apply_ana_log(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;
	int n;

	assert_on(path->reactor);
	assert(path->ana.groups && path->ana.page);
	weft_mutex_lock(&ctrl->lock);
	n = parse_ana_log(path->ana.page, path->ana.size, path->ana.groups);
	path->ana.ngroups = n < 0 ? 0 : (unsigned)n;
	qsort(path->ana.groups, path->ana.ngroups, sizeof(*path->ana.groups), by_id);
	path->ana.reads_applied = path->ana.reads_begun;
	path->ana.change_notified = false;
	host_access_update(ctrl);
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
	return n;
}

/* false: it was lost, or ends the association. */
static bool ana_log_ok(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);
	struct weft_err why = { "" };

	ana_enter(&path->ana, HOST_ANA_IDLE);
	if (rc < 0 || host_path_is_lost(path))
		return false;
	if (status) {
		rc = host_fail_status(&why, a->name, status);
		host_path_broken(path, rc, "%s", why.text);
	} else if (apply_ana_log(path) < 0) {
		host_path_broken(path, -EPROTO, "%s: its groups reach beyond its end", a->name);
	}
	return !host_path_is_lost(path);
}

static void ana_on_setup_log(struct host_admin *a, int rc)
{
	if (!ana_log_ok(a, rc))
		return;
	host_scan_all(a->path); /* ends with host_path_up() */
	if (!host_path_is_lost(a->path))
		check_anatt(a->path);
}

static void ana_on_log(struct host_admin *a, int rc)
{
	bool reread = a->path->ana.state == HOST_ANA_REREAD;

	if (!ana_log_ok(a, rc))
		return;
	if (reread)
		host_ana_read(a->path);
	if (!host_path_is_lost(a->path))
		check_anatt(a->path);
}

static void read_ana_log(struct host_path *path, void (*done)(struct host_admin *a, int rc))
{
	struct host_ana *ana = &path->ana;
	struct host_admin *a = &ana->cmd;

	assert(ana->groups && ana->page);
	weft_mutex_lock(&path->ctrl->lock);
	ana->reads_begun++;
	weft_mutex_unlock(&path->ctrl->lock);
	ana_enter(ana, HOST_ANA_READING);
	host_admin_prepare(a, "Get Log Page: ANA", done);
	memset(ana->page, 0, ana->size);
	a->inexact = true;
	a->iov = (struct iovec){ ana->page, ana->size };
	host_fill_log_page(&a->cmd, NVME_LOG_LID_ANA, 0, 0, (uint32_t)ana->size);
	a->cmd.common.cdw10 |= cpu_to_le32(NVME_LOG_ANA_LSP_RGO_GROUPS_ONLY << LSP_SHIFT);
	host_admin_start(path, a, path->config.options.admin_ms);
}

/* --- when ------------------------------------------------------------------------------------- */

static void read_ana_log_ratelimited(struct host_path *path)
{
	struct host_ana *ana = &path->ana;
	uint32_t wait_ms = host_ratelimit_take(&ana->ratelimit, weft_reactor_now_ns(path->reactor));

	if (wait_ms) {
		ana_enter(ana, HOST_ANA_DUE);
		weft_timer_set(path->reactor, &ana->timer, wait_ms);
	} else {
		read_ana_log(path, ana_on_log);
	}
}

static void ana_on_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, ana.timer);

	if (!path->ana.cmd.inflight && !host_path_is_lost(path))
		read_ana_log_ratelimited(path);
}

void host_ana_read(struct host_path *path)
{
	struct host_ana *ana = &path->ana;

	assert_on(path->reactor);
	if (!ana->groups || !host_path_is_connected(path))
		return;
	if (ana->state == HOST_ANA_READING)
		ana_enter(ana, HOST_ANA_REREAD);
	else if (ana->state == HOST_ANA_IDLE)
		read_ana_log_ratelimited(path);
}

void host_ana_changed(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;

	assert_on(path->reactor);
	host_ana_read(path);
	weft_mutex_lock(&ctrl->lock);
	path->ana.change_notified = path->ana.groups;
	host_access_update(ctrl);
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
}

/* As many groups as the controller says it may have, and as one command moves. */
static int alloc_ana_log(struct host_path *path)
{
	struct host_ana *ana = &path->ana;
	uint32_t n = path->assoc.traits.ana_groups;
	size_t most = (path->assoc.traits.transfer_max - sizeof(struct nvme_ana_log)) /
		      sizeof(struct nvme_ana_group_desc);

	assert(ana->state == HOST_ANA_IDLE && !ana->cmd.inflight);
	n = n > GROUPS_MAX ? GROUPS_MAX : n;
	n = n > most ? (uint32_t)most : n;
	host_ana_free(path);
	ana->size = sizeof(struct nvme_ana_log) + n * sizeof(struct nvme_ana_group_desc);
	ana->page = malloc(ana->size);
	ana->groups = calloc(n + 1, sizeof(*ana->groups));
	return ana->page && ana->groups ? 0 : -ENOMEM;
}

void host_ana_setup(struct host_path *path)
{
	assert(host_path_is_setting_up(path));
	if (!path->assoc.traits.ana) {
		host_ana_free(path);
		host_scan_all(path);
		return;
	}
	if (alloc_ana_log(path) < 0) {
		host_path_broken(path, -ENOMEM, "no memory for ANA groups");
		return;
	}
	path->ana.timer.fn = ana_on_timer;
	read_ana_log(path, ana_on_setup_log);
}

void host_ana_stop(struct host_path *path)
{
	assert_on(path->reactor);
	weft_timer_stop(path->reactor, &path->ana.timer);
	path->ana.change_ns = 0;
	if (path->ana.state == HOST_ANA_DUE)
		ana_enter(&path->ana, HOST_ANA_IDLE);
	else if (path->ana.state == HOST_ANA_REREAD)
		ana_enter(&path->ana, HOST_ANA_READING);
}

void host_ana_free(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;

	assert(!path->ana.cmd.inflight);
	weft_mutex_lock(&ctrl->lock);
	free(path->ana.groups);
	free(path->ana.page);
	path->ana.groups = NULL;
	path->ana.page = NULL;
	path->ana.ngroups = 0;
	weft_mutex_unlock(&ctrl->lock);
}
