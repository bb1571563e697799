/* stop.c - nbdkit is told to end while I/O waits for a lost target.
 *
 *   SIGTERM … ─▶ ours ─▶ nbdkit's: it waits for I/O under way ─▶ cleanup ─▶ stop_unwatch()
 *                  └─▶ a thread: no cleanup, and the target is away for GRACE_MS: the process ends
 *
 * I/O that waits would keep it for loss_timeout, and nbdkit tells a plugin nothing of that. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plugin.h"

#define GRACE_MS 1000
#define LOOK_MS  100

static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP }; /* nbdkit ends with these */
static struct sigaction nbdkits[NSIG];
static int told = -1, through = -1; /* eventfds */
static pthread_t watcher;

static void on_signal(int signal)
{
	int error = errno;

	eventfd_write(told, 1);
	errno = error;
	nbdkits[signal].sa_handler(signal);
}

/* One that nbdkit ignores, or that would end it at once, stays as it is. */
static void listen_too(int signal)
{
	struct sigaction ours;

	if (sigaction(signal, NULL, &ours) < 0 || (ours.sa_flags & SA_SIGINFO) ||
	    ours.sa_handler == SIG_DFL || ours.sa_handler == SIG_IGN)
		return;
	nbdkits[signal] = ours;
	ours.sa_handler = on_signal;
	sigaction(signal, &ours, NULL);
}

static void stop_listening(int signal)
{
	if (nbdkits[signal].sa_handler)
		sigaction(signal, &nbdkits[signal], NULL);
}

static void *watch(void *arg)
{
	struct pollfd fds[] = { { .fd = through, .events = POLLIN },
				{ .fd = told, .events = POLLIN } };
	int away_ms = 0;

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	while (!fds[0].revents && away_ms < GRACE_MS) {
		poll(fds, 1, LOOK_MS);
		away_ms = weft_uplink_is_live(&plugin_uplink) ? 0 : away_ms + LOOK_MS;
	}
	if (fds[0].revents)
		return NULL;
	nbdkit_error("I/O still waits for the target; it is given up");
	_exit(EXIT_FAILURE);
}

int stop_watch(void)
{
	told = eventfd(0, EFD_CLOEXEC);
	through = eventfd(0, EFD_CLOEXEC);
	if (told < 0 || through < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		listen_too(ending[i]);
	return -pthread_create(&watcher, NULL, watch, NULL);
}

void stop_unwatch(void)
{
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		stop_listening(ending[i]);
	eventfd_write(through, 1);
	pthread_join(watcher, NULL);
}
