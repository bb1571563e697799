/* supervise.c - the main thread while workers work: draws the progress bar, reports lost
 * connections, and stops the workers after a signal.
 *
 * Workers finish what they have under way, unless they wait for a lost connection: then they are
 * abandoned after a while, or at the second signal, and the process ends without them. */
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "cli/cp/internal.h"
#include "cli/host_options.h"

#define TICK_MS 200

void weft_cp_print_events(struct cp *cp)
{
	struct cp_endpoint *ends[] = { cp->from, cp->to };
	struct weft_event event;

	for (unsigned i = 0; i < 2; i++) {
		while (ends[i]->ctrl && weft_ctrl_next_event(ends[i]->ctrl, &event)) {
			if (event.kind != WEFT_EVENT_STATE || cp->ask->quiet)
				continue;
			weft_progress_clear(&cp->progress);
			weft_host_print_state(cp->ask->command, ends[i]->name, &event,
					      &ends[i]->lost);
		}
	}
}

static void wait_a_tick(struct cp *cp)
{
	struct cp_endpoint *ends[] = { cp->from, cp->to };
	struct pollfd fds[3] = { { .fd = cp->wake, .events = POLLIN } };
	eventfd_t ignored;
	nfds_t count = 1;

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i]->ctrl)
			fds[count++] = (struct pollfd){ .fd = weft_ctrl_event_fd(ends[i]->ctrl),
							.events = POLLIN };
	}
	poll(fds, count, TICK_MS);
	if (fds[0].revents & POLLIN)
		eventfd_read(cp->wake, &ignored);
	weft_cp_print_events(cp);
}

/* A worker would wait for ever on a pipe that nobody reads. */
static void wake_streams(struct cp *cp)
{
	if (!cp->from->is_stream && !cp->to->is_stream)
		return;
	for (unsigned i = 0; i < cp->jobs; i++)
		pthread_kill(cp->workers[i].thread, SIGUSR1);
}

void weft_cp_supervise(struct cp *cp)
{
	while (atomic_load(&cp->running)) {
		wait_a_tick(cp);
		weft_progress_show(&cp->progress, atomic_load(&cp->done));
		if (!weft_cp_signal())
			continue;
		atomic_store(&cp->stop, true);
		wake_streams(cp);
		if (weft_cp_must_exit()) {
			cp->abandoned = atomic_load(&cp->running);
			return;
		}
	}
}
