/* aer.c - asynchronous events (AER): a few requests are always out, and each event is handled.
 *
 *   IDLE ─ request ─▶ SENT ─ type, info, log page ─▶ READING that log page (it re-arms the event)
 *     ▲                                                 └▶ rescan or tell ─▶ the program's events
 *     └─────── at once, within the rate limit ◀────────────┘
 *
 * I/O may wait for the next event, so a request is out again as soon as it can be. The rate limit
 * bounds what a controller that never stops reporting can cost us. */
#include <assert.h>
#include <string.h>

#include "host/discovery/follower.h"

enum { /* NVMe base 2.0, figure 146: types; 150: notices */
       TYPE_ERROR = 0,
       TYPE_HEALTH = 1,
       TYPE_NOTICE = 2,
       NOTICE_NAMESPACES = 0x00,
       NOTICE_ANA = 0x03,
       NOTICE_DISCOVERY = 0xf0,
};

/* States that may come before. */
static const unsigned edges[] = {
	[HOST_AER_IDLE] = 1u << HOST_AER_SENT | 1u << HOST_AER_READING,
	[HOST_AER_SENT] = 1u << HOST_AER_IDLE,
	[HOST_AER_READING] = 1u << HOST_AER_SENT,
};

static void aer_enter(struct host_aer *aer, enum host_aer_state state)
{
	assert(edges[state] & 1u << aer->state);
	aer->state = state;
}

static void aer_send_requests(struct host_path *path);

static __le32 *aer_log_page(const struct host_path *path, const struct host_aer *aer)
{
	assert(aer >= path->aer.requests && aer < path->aer.requests + HOST_AERS);
	return (__le32 *)(path->aer.page + (aer - path->aer.requests) * HOST_PAGE);
}

/* Rescans the namespaces that the page lists; all of them if the list overflowed, or somebody else
 * has read it: reading clears it. */
static void rescan_changed_ns(struct host_path *path, const struct host_aer *aer, bool page_read)
{
	const __le32 *nsids = aer_log_page(path, aer);
	bool whole = page_read && (aer->result >> 16 & 0xff) == NVME_LOG_LID_CHANGED_NS &&
		     nsids[0] && le32_to_cpu(nsids[0]) != NVME_NSID_BROADCAST;

	if (whole && !path->aer.changed_read)
		host_scan_changed(path, nsids, HOST_PAGE / sizeof(*nsids));
	else
		host_scan_all(path);
	path->aer.changed_read = false;
}

static void handle_notice(struct host_path *path, const struct host_aer *aer, bool page_read)
{
	uint32_t result = aer->result;

	switch (result >> 8 & 0xff) {
	case NOTICE_NAMESPACES:
		rescan_changed_ns(path, aer,
				  page_read); /* the program gets the event when it is done */
		break;
	case NOTICE_ANA:
		host_ana_changed(path);
		host_event_push(path->ctrl, WEFT_EVENT_ANA, host_path_public_state(path), result,
				"asymmetric namespace access changed");
		break;
	case NOTICE_DISCOVERY:
		host_event_push(path->ctrl, WEFT_EVENT_DISCOVERY, host_path_public_state(path),
				result, "the discovery log changed");
		if (path->ctrl->follower)
			host_follower_read_log(path->ctrl->follower);
		break;
	default:
		host_event_push(path->ctrl, WEFT_EVENT_OTHER, host_path_public_state(path), result,
				"notice 0x%02x", result >> 8 & 0xff);
	}
}

static void handle_async_event(struct host_path *path, const struct host_aer *aer, bool page_read)
{
	uint32_t result = aer->result;

	assert(aer->state == HOST_AER_IDLE);
	switch (result & 7) {
	case TYPE_ERROR:
		host_event_push(path->ctrl, WEFT_EVENT_ERROR, host_path_public_state(path), result,
				"the controller reports error 0x%02x", result >> 8 & 0xff);
		break;
	case TYPE_HEALTH:
		host_event_push(path->ctrl, WEFT_EVENT_ERROR, host_path_public_state(path), result,
				"the controller reports a health warning 0x%02x",
				result >> 8 & 0xff);
		break;
	case TYPE_NOTICE:
		handle_notice(path, aer, page_read);
		break;
	default:
		host_event_push(path->ctrl, WEFT_EVENT_OTHER, host_path_public_state(path), result,
				"event of type %u: 0x%02x", result & 7, result >> 8 & 0xff);
	}
}

static void aer_finish_event(struct host_path *path, struct host_aer *aer, bool page_read)
{
	aer_enter(aer, HOST_AER_IDLE);
	handle_async_event(path, aer, page_read);
	aer_send_requests(path);
}

static void aer_on_log(struct host_admin *a, int rc)
{
	struct host_aer *aer = container_of(a, struct host_aer, log);

	if (rc < 0 && host_path_is_lost(a->path))
		aer_enter(aer, HOST_AER_IDLE);
	else
		aer_finish_event(a->path, aer, rc == 0 && !host_status(&a->cqe));
}

static void aer_read_log(struct host_path *path, struct host_aer *aer, uint8_t lid)
{
	struct host_admin *a = &aer->log;

	aer_enter(aer, HOST_AER_READING);
	host_admin_prepare(a, "Get Log Page", aer_on_log);
	memset(aer_log_page(path, aer), 0, HOST_PAGE);
	a->inexact = true;
	a->iov = (struct iovec){ aer_log_page(path, aer), HOST_PAGE };
	host_fill_log_page(&a->cmd, lid, NVME_NSID_BROADCAST, 0, HOST_PAGE);
	host_admin_start(path, a, path->config.options.admin_ms);
}

/* I/O may wait for this one, and ana.c reads the page anyway: once is enough. */
static bool ana_reads_log(const struct host_path *path, uint32_t result)
{
	return path->ana.groups && (result & 7) == TYPE_NOTICE &&
	       (result >> 8 & 0xff) == NOTICE_ANA && (result >> 16 & 0xff) == NVME_LOG_LID_ANA;
}

static void aer_on_event(struct host_admin *a, int rc)
{
	struct host_aer *aer = container_of(a, struct host_aer, cmd);

	if (rc < 0 || host_status(&a->cqe)) { /* lost, or more of them than it wants */
		aer_enter(aer, HOST_AER_IDLE);
		return;
	}
	aer->result = (uint32_t)le64_to_cpu(a->cqe.result);
	if (ana_reads_log(a->path, aer->result))
		aer_finish_event(a->path, aer, false);
	else
		aer_read_log(a->path, aer, (uint8_t)(aer->result >> 16));
}

static void send_aer(struct host_path *path, struct host_aer *aer)
{
	struct host_admin *a = &aer->cmd;

	host_admin_prepare(a, "Asynchronous Event Request", aer_on_event);
	a->cmd.common.opcode = nvme_admin_async_event;
	aer_enter(aer, HOST_AER_SENT);
	host_admin_start(path, a, 0);
}

static void aer_send_requests(struct host_path *path)
{
	uint64_t now = weft_reactor_now_ns(path->reactor);

	assert_on(path->reactor);
	assert(path->assoc.traits.aers <= HOST_AERS);
	for (unsigned i = 0; i < path->assoc.traits.aers && host_path_is_connected(path); i++) {
		struct host_aer *aer = &path->aer.requests[i];
		bool idle = aer->state == HOST_AER_IDLE;
		uint32_t wait_ms = idle ? host_ratelimit_take(&path->aer.ratelimit, now) : 0;

		if (wait_ms) {
			weft_timer_set(path->reactor, &path->aer.timer, wait_ms);
			return;
		}
		if (idle)
			send_aer(path, aer);
	}
}

static void aer_on_timer(struct weft_timer *timer)
{
	aer_send_requests(container_of(timer, struct host_path, aer.timer));
}

void host_aer_start(struct host_path *path)
{
	assert(path->state == HOST_PATH_LIVE);
	path->aer.timer.fn = aer_on_timer;
	aer_send_requests(path);
}

void host_aer_stop(struct host_path *path)
{
	assert_on(path->reactor);
	weft_timer_stop(path->reactor, &path->aer.timer);
}
