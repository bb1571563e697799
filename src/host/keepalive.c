/* keepalive.c - telling the controller that we are there, and noticing when it is not.
 *
 * Every half of the time-out a Keep Alive. A controller that counts any command as a sign of life
 * (TBKAS) gets one only if nothing was sent since the last look, which comes twice as often then: a
 * command sent right after a look must not be the last for the whole of the time-out. One that is
 * not answered within the time-out ends the association. */
#include <string.h>

#include "host/internal.h"

static bool by_traffic(const struct weft_ctrl *ctrl)
{
	return ctrl->traits.ctratt & NVME_CTRL_CTRATT_TBKAS;
}

static uint32_t period_ms(const struct weft_ctrl *ctrl)
{
	uint32_t period = ctrl->config.options.keepalive_ms / (by_traffic(ctrl) ? 4 : 2);

	return period ? period : 1;
}

static void on_answer(struct host_admin *a, int rc)
{
	a->ctrl->keepalive_out = false;
	/* Who refuses them does not wait for them. */
	if (rc == 0 && host_status(&a->cqe))
		host_keepalive_stop(a->ctrl);
}

static void send_one(struct weft_ctrl *ctrl)
{
	struct host_admin *a = &ctrl->keepalive_cmd;

	memset(a, 0, sizeof(*a));
	a->name = "Keep Alive";
	a->done = on_answer;
	a->cmd.common.opcode = nvme_admin_keep_alive;
	ctrl->keepalive_out = true;
	host_admin_start(ctrl, a, ctrl->config.options.keepalive_ms);
}

static void on_period(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, keepalive);
	bool traffic = atomic_exchange(&ctrl->traffic, false);

	weft_timer_set(ctrl->reactor, timer, period_ms(ctrl));
	if (ctrl->keepalive_out || (traffic && by_traffic(ctrl)))
		return;
	send_one(ctrl);
}

void host_keepalive_start(struct weft_ctrl *ctrl)
{
	ctrl->keepalive.fn = on_period;
	if (ctrl->config.options.keepalive_ms)
		weft_timer_set(ctrl->reactor, &ctrl->keepalive, period_ms(ctrl));
}

void host_keepalive_stop(struct weft_ctrl *ctrl)
{
	weft_timer_stop(ctrl->reactor, &ctrl->keepalive);
}
