/* keepalive.c - Keep Alive: tells the controller that the host is there, and notices when the
 * controller is not.
 *
 * The host sends two Keep Alives per KATO. A controller that counts any command as a sign of life
 * (TBKAS) gets one only if nothing was sent since the last check, and there are four checks per
 * KATO: a command sent right after a check must not be the last for all of KATO. A Keep Alive that
 * is not answered within KATO ends the association, like any admin command that is not answered in
 * time (admin.c). Where there is another path to go on with, probe.c finds out sooner. */
#include <string.h>

#include "host/internal.h"

static bool is_traffic_based(const struct host_path *path)
{
	return path->assoc.traits.ctratt & NVME_CTRL_CTRATT_TBKAS;
}

static uint32_t period_ms(const struct host_path *path)
{
	uint32_t period = path->config.options.keepalive_ms / (is_traffic_based(path) ? 4 : 2);

	return period ? period : 1;
}

static void keepalive_on_answer(struct host_admin *a, int rc)
{
	/* A controller that refuses Keep Alive does not wait for it. */
	if (rc == 0 && host_status(&a->cqe))
		host_keepalive_stop(a->path);
}

static void send_keepalive(struct host_path *path)
{
	struct host_admin *a = &path->keepalive.cmd;

	assert_on(path->reactor);
	host_admin_prepare(a, "Keep Alive", keepalive_on_answer);
	a->cmd.common.opcode = nvme_admin_keep_alive;
	host_admin_start(path, a, path->config.options.keepalive_ms);
}

static void keepalive_on_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, keepalive.timer);
	bool traffic = atomic_exchange(&path->activity.traffic, false);

	assert(host_path_is_connected(path));
	weft_timer_set(path->reactor, timer, period_ms(path));
	if (path->keepalive.cmd.inflight || (traffic && is_traffic_based(path)))
		return;
	send_keepalive(path);
}

void host_keepalive_start(struct host_path *path)
{
	assert(path->state == HOST_PATH_LIVE);
	path->keepalive.timer.fn = keepalive_on_timer;
	if (path->config.options.keepalive_ms)
		weft_timer_set(path->reactor, &path->keepalive.timer, period_ms(path));
}

void host_keepalive_stop(struct host_path *path)
{
	assert_on(path->reactor);
	weft_timer_stop(path->reactor, &path->keepalive.timer);
}
