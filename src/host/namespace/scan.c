/* scan.c - scans (identifies) the open namespaces through a path: after each connect, after a
 * namespace event, and when the program opens one. A path carries no I/O before its scan is done:
 * data must not reach a namespace that has taken the place of another one.
 *
 *   IDLE ─ due ─▶ IDENTIFY ─▶ DESC_LIST ─▶ ns_validate.c: is it the same? ─▶ the next … ─▶ IDLE
 *
 * If the controller refuses to identify a namespace, that namespace has no I/O through this path
 * and is scanned again later: a scan never ends an association.
 *
 * Invariant: a record that becomes due during its scan is scanned again. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "host/internal.h"

/* States that may come before. */
static const unsigned edges[] = {
	[HOST_SCAN_IDLE] = 1u << HOST_SCAN_IDLE | 1u << HOST_SCAN_IDENTIFY |
			   1u << HOST_SCAN_DESC_LIST,
	[HOST_SCAN_IDENTIFY] = 1u << HOST_SCAN_IDLE | 1u << HOST_SCAN_IDENTIFY |
			       1u << HOST_SCAN_DESC_LIST,
	[HOST_SCAN_DESC_LIST] = 1u << HOST_SCAN_IDENTIFY,
};

static void scan_enter(struct host_path *path, enum host_scan_state state)
{
	assert(edges[state] & 1u << path->scan.state);
	path->scan.state = state;
}

static void scan_next(struct host_path *path);

static void scan_identify(struct host_path *path, uint8_t cns, char *page,
			  void (*done)(struct host_admin *a, int rc))
{
	struct host_admin *a = &path->scan.cmd;

	assert_on(path->reactor);
	assert(path->scan.nsid);
	host_admin_prepare(a, "Identify Namespace", done);
	memset(page, 0, HOST_PAGE);
	a->iov = (struct iovec){ page, HOST_PAGE };
	host_fill_identify(&a->cmd, cns, path->scan.nsid);
	host_admin_start(path, a, path->config.options.admin_ms);
}

static struct host_ns_view *view_of(const struct host_path *path, struct weft_ns *ns)
{
	return &ns->views[path->index];
}

enum {
	LOSSES_MAX = 3, /* of a connection during the first scan */
	PAUSE_MS = 100,
	PAUSE_MAX_MS = 5000, /* before a refused scan is repeated */
};

/* --- the result of a scan --------------------------------------------------------------------- */

static void validate_handles(struct host_path *path, struct host_ns_record *at, int rc,
			     const struct weft_err *why, bool *differs, bool *back)
{
	struct weft_ns *ns;

	assert_locked(&path->ctrl->lock);
	weft_list_for_each(ns, &at->open, link) {
		if (view_of(path, ns)->scan_due)
			continue;
		*back |= view_of(path, ns)->refused_ns && !rc;
		*differs |= host_ns_validate(path, ns, rc, *why);
	}
}

static void scan_record_done(struct host_path *path, struct host_ns_record *at)
{
	struct weft_ctrl *ctrl = path->ctrl;

	assert_locked(&path->ctrl->lock);
	host_ns_record_scanned(ctrl, at, path->index);
	host_access_update_one(ctrl, at);
	host_ctrl_wake_all(ctrl);
}

/* The record may have no open handle any more. */
static void scan_finish_ns(struct host_path *path, int rc, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = path->ctrl;
	bool differs = false, back = false, alone = host_path_is_only(path);
	struct host_ns_record *at;

	assert(path->scan.state != HOST_SCAN_IDLE && path->scan.nsid);
	weft_mutex_lock(&ctrl->lock);
	at = host_ns_record_find(ctrl, path->scan.nsid);
	if (at) {
		validate_handles(path, at, rc, why, &differs, &back);
		scan_record_done(path, at);
	}
	weft_mutex_unlock(&ctrl->lock);
	if (differs && !alone)
		host_event_push(ctrl, WEFT_EVENT_PATH, host_path_public_state(path), 0,
				"%s: not used for namespace %u: it is another one there",
				path->pub.address, path->scan.nsid);
	else if (back)
		host_event_push(ctrl, WEFT_EVENT_NAMESPACES, host_path_public_state(path), 0,
				"%s: namespace %u can be used again", path->pub.address,
				path->scan.nsid);
	scan_next(path);
}

static void scan_ns_absent(struct host_path *path)
{
	struct weft_err why = { "there is no such namespace" };

	scan_finish_ns(path, -ENODEV, &why);
}

static void note_open_loss(const struct host_path *path, struct host_ns_record *at)
{
	struct weft_ns *ns;

	assert_locked(&path->ctrl->lock);
	weft_list_for_each(ns, &at->open, link) {
		if (!ns->opening)
			continue;
		if (path->assoc.rc != -ETIMEDOUT && ++ns->losses < LOSSES_MAX)
			continue;
		host_ns_open_failed(ns, path->assoc.rc == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET,
				    &path->assoc.why);
	}
}

/* The connection is lost. If the scan itself breaks it each time, weft_ns_open() fails. */
static void scan_lost(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;
	struct host_ns_record *at;

	assert(path->scan.state != HOST_SCAN_IDLE);
	scan_enter(path, HOST_SCAN_IDLE);
	weft_mutex_lock(&ctrl->lock);
	at = host_ns_record_find(ctrl, path->scan.nsid);
	if (at)
		note_open_loss(path, at);
	pthread_cond_broadcast(&ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
}

static bool validate_handles_refused(struct host_path *path, struct host_ns_record *at, int rc,
				     const struct weft_err *why, bool final)
{
	struct weft_ns *ns;
	bool news = false;

	assert_locked(&path->ctrl->lock);
	weft_list_for_each(ns, &at->open, link)
		if (!view_of(path, ns)->scan_due)
			news |= host_ns_validate_refused(path, ns, rc, why, final);
	return news;
}

/* What is behind the nsid now is not known: no I/O may go there. Other namespaces are not
 * affected. */
static void scan_refused(struct host_path *path, uint16_t status)
{
	struct weft_ctrl *ctrl = path->ctrl;
	struct weft_err why = { "" };
	int rc = host_fail_status(&why, "Identify Namespace", status);
	struct host_ns_record *at;
	bool news = false;

	assert(path->scan.state != HOST_SCAN_IDLE);
	weft_mutex_lock(&ctrl->lock);
	at = host_ns_record_find(ctrl, path->scan.nsid);
	if (at) {
		news = validate_handles_refused(path, at, rc, &why, status & SC_DNR);
		scan_record_done(path, at);
	}
	weft_mutex_unlock(&ctrl->lock);
	if (news)
		host_event_push(ctrl, WEFT_EVENT_NAMESPACES, host_path_public_state(path), 0,
				"%s: namespace %u cannot be used: %s", path->pub.address,
				path->scan.nsid, why.text);
	scan_next(path);
}

/* --- one namespace ---------------------------------------------------------------------------- */

static void scan_on_desc_list(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);
	const struct weft_err none = { "" };

	if (rc < 0) {
		scan_lost(path);
		return;
	}
	if ((status & 0x7ff) == SC_GENERIC(INVALID_NS)) { /* it was just removed */
		scan_ns_absent(path);
		return;
	}
	if (status && !host_ns_desc_list_unsupported(status)) {
		scan_refused(path, status);
		return;
	}
	if (status)
		memset(path->scan.page + HOST_PAGE, 0, HOST_PAGE);
	scan_finish_ns(path, 0, &none);
}

static bool ns_is_unknown(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(INVALID_NS) ||
	       (status & 0x7ff) == SC_GENERIC(INVALID_FIELD);
}

static void scan_desc_list(struct host_path *path)
{
	scan_enter(path, HOST_SCAN_DESC_LIST);
	scan_identify(path, NVME_IDENTIFY_CNS_NS_DESC_LIST, path->scan.page + HOST_PAGE,
		      scan_on_desc_list);
}

static void scan_on_identify(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);

	if (rc < 0)
		scan_lost(path);
	else if (ns_is_unknown(status))
		scan_ns_absent(path);
	else if (status)
		scan_refused(path, status);
	else
		scan_desc_list(path);
}

/* --- all that are due ------------------------------------------------------------------------- */

static uint32_t pop_due_nsid(struct host_path *path)
{
	struct host_ns_record *at;
	uint32_t nsid;

	weft_mutex_lock(&path->ctrl->lock);
	at = host_ns_record_pop_due(path->ctrl, path->index);
	nsid = at ? at->id.id : 0;
	weft_mutex_unlock(&path->ctrl->lock);
	return nsid;
}

/* Repeats the scans that were refused. */
static void scan_on_retry_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, scan.retry_timer);

	weft_mutex_lock(&path->ctrl->lock);
	host_ns_records_rescan_refused(path->ctrl, path->index);
	weft_mutex_unlock(&path->ctrl->lock);
	if (host_path_is_connected(path)) /* else its set-up scans them */
		host_scan_due(path);
}

static bool any_ns_refused(struct host_path *path)
{
	bool is;

	weft_mutex_lock(&path->ctrl->lock);
	is = !weft_list_empty(&path->ctrl->refused[path->index]);
	weft_mutex_unlock(&path->ctrl->lock);
	return is;
}

static void scan_arm_retry(struct host_path *path)
{
	uint32_t pause = path->scan.retry_ms ? path->scan.retry_ms * 2 : PAUSE_MS;

	path->scan.retry_ms = !any_ns_refused(path) ? 0 :
			      pause < PAUSE_MAX_MS  ? pause :
						      PAUSE_MAX_MS;
	path->scan.retry_timer.fn = scan_on_retry_timer;
	if (path->scan.retry_ms)
		weft_timer_set(path->reactor, &path->scan.retry_timer, path->scan.retry_ms);
}

static void scan_done(struct host_path *path)
{
	bool tells = path->scan.notify;

	scan_enter(path, HOST_SCAN_IDLE);
	path->scan.notify = false;
	scan_arm_retry(path);
	if (host_path_is_setting_up(path)) {
		host_path_up(path);
	} else if (tells) {
		host_event_push(path->ctrl, WEFT_EVENT_NAMESPACES, host_path_public_state(path), 0,
				"namespaces changed");
	}
}

static void scan_next(struct host_path *path)
{
	path->scan.nsid = pop_due_nsid(path);
	if (path->scan.nsid) {
		scan_enter(path, HOST_SCAN_IDENTIFY);
		scan_identify(path, NVME_IDENTIFY_CNS_NS, path->scan.page, scan_on_identify);
	} else {
		scan_done(path);
	}
}

void host_scan_due(struct host_path *path)
{
	assert_on(path->reactor);
	if (path->scan.state == HOST_SCAN_IDLE)
		scan_next(path);
}

void host_scan_all(struct host_path *path)
{
	struct host_ns_record *at;

	assert_on(path->reactor);
	path->scan.notify |= !host_path_is_setting_up(path);
	weft_mutex_lock(&path->ctrl->lock);
	weft_list_for_each(at, &path->ctrl->ns_records, link)
		host_ns_record_mark_due(path->ctrl, at, path->index);
	weft_mutex_unlock(&path->ctrl->lock);
	host_scan_due(path);
}

void host_scan_changed(struct host_path *path, const __le32 *nsids, unsigned max)
{
	struct host_ns_record *at;

	assert_on(path->reactor);
	path->scan.notify = true;
	weft_mutex_lock(&path->ctrl->lock);
	for (unsigned i = 0; i < max && nsids[i]; i++) {
		at = host_ns_record_find(path->ctrl, le32_to_cpu(nsids[i]));
		if (at)
			host_ns_record_mark_due(path->ctrl, at, path->index);
	}
	weft_mutex_unlock(&path->ctrl->lock);
	host_scan_due(path);
}

void host_scan_stop(struct host_path *path)
{
	assert_on(path->reactor);
	weft_timer_stop(path->reactor, &path->scan.retry_timer);
}
