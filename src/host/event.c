/* event.c - the program's events: a bounded queue, and a descriptor that is readable while it is
 * not empty. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "base/count.h"
#include "host/internal.h"

static struct weft_event *reserve_event(struct weft_ctrl *ctrl)
{
	unsigned last = (ctrl->first_event + ctrl->nevents) % HOST_EVENTS;

	assert_locked(&ctrl->lock);
	if (ctrl->nevents < HOST_EVENTS) {
		ctrl->nevents++;
		return &ctrl->events[last];
	}
	/* The queue is full: its newest event becomes WEFT_EVENT_OVERFLOW. */
	last = (ctrl->first_event + HOST_EVENTS - 1) % HOST_EVENTS;
	ctrl->events[last].kind = WEFT_EVENT_OVERFLOW;
	snprintf(ctrl->events[last].text, sizeof(ctrl->events[last].text), "events were dropped");
	return NULL;
}

void host_event_push(struct weft_ctrl *ctrl, enum weft_event_kind kind, enum weft_state state,
		     uint32_t result, const char *fmt, ...)
{
	struct weft_event *event;
	va_list ap;

	weft_mutex_lock(&ctrl->lock);
	event = reserve_event(ctrl);
	if (event) {
		event->kind = kind;
		event->state = state;
		event->result = result;
		va_start(ap, fmt);
		vsnprintf(event->text, sizeof(event->text), fmt, ap);
		va_end(ap);
	}
	eventfd_write(ctrl->event_fd, 1);
	weft_mutex_unlock(&ctrl->lock);
}

bool weft_ctrl_next_event(struct weft_ctrl *ctrl, struct weft_event *event)
{
	eventfd_t count;
	bool found;

	weft_mutex_lock(&ctrl->lock);
	found = ctrl->nevents;
	if (found) {
		*event = ctrl->events[ctrl->first_event];
		ctrl->first_event = (ctrl->first_event + 1) % HOST_EVENTS;
		weft_count_down(ctrl->nevents);
	}
	if (!ctrl->nevents)
		eventfd_read(ctrl->event_fd, &count);
	weft_mutex_unlock(&ctrl->lock);
	return found;
}

int weft_ctrl_event_fd(struct weft_ctrl *ctrl)
{
	return ctrl->event_fd;
}
