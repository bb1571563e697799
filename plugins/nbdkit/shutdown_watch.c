/* shutdown_watch.c - ends the process when nbdkit is told to end but waits for I/O, and the target
 * cannot be reached. nbdkit does not tell a plugin, so the plugin chains its signal handlers.
 *
 *   SIGTERM … ─▶ ours ─▶ nbdkit's: it waits for I/O under way ─▶ cleanup ─▶ shutdown_watch_stop()
 *                  └─▶ a thread: no cleanup, and no path for GRACE_MS: the process ends
 *
 * Without this, the process would wait for loss_timeout. */
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

static const int term_signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP }; /* nbdkit ends with these */
static struct sigaction nbdkit_actions[NSIG];
static int term_fd = -1, cleanup_fd = -1; /* eventfds */
static pthread_t watcher;

static void on_term_signal(int signal)
{
	int error = errno;

	eventfd_write(term_fd, 1);
	errno = error;
	nbdkit_actions[signal].sa_handler(signal);
}

/* A signal that nbdkit ignores, or that would end it at once, stays as it is. */
static void chain_handler(int signal)
{
	struct sigaction ours;

	if (sigaction(signal, NULL, &ours) < 0 || (ours.sa_flags & SA_SIGINFO) ||
	    ours.sa_handler == SIG_DFL || ours.sa_handler == SIG_IGN)
		return;
	nbdkit_actions[signal] = ours;
	ours.sa_handler = on_term_signal;
	sigaction(signal, &ours, NULL);
}

static void restore_handler(int signal)
{
	if (nbdkit_actions[signal].sa_handler)
		sigaction(signal, &nbdkit_actions[signal], NULL);
}

static void *shutdown_watch_main(void *arg)
{
	struct pollfd fds[] = { { .fd = cleanup_fd, .events = POLLIN },
				{ .fd = term_fd, .events = POLLIN } };
	int away_ms = 0;

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	while (!fds[0].revents && away_ms < GRACE_MS) {
		poll(fds, 1, LOOK_MS);
		away_ms = weft_volume_conn_is_live(plugin_conn) ? 0 : away_ms + LOOK_MS;
	}
	if (fds[0].revents)
		return NULL;
	nbdkit_error("I/O still waits for the target; it is given up");
	_exit(EXIT_FAILURE);
}

int shutdown_watch_start(void)
{
	term_fd = eventfd(0, EFD_CLOEXEC);
	cleanup_fd = eventfd(0, EFD_CLOEXEC);
	if (term_fd < 0 || cleanup_fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(term_signals) / sizeof(term_signals[0]); i++)
		chain_handler(term_signals[i]);
	return -pthread_create(&watcher, NULL, shutdown_watch_main, NULL);
}

void shutdown_watch_stop(void)
{
	for (size_t i = 0; i < sizeof(term_signals) / sizeof(term_signals[0]); i++)
		restore_handler(term_signals[i]);
	eventfd_write(cleanup_fd, 1);
	pthread_join(watcher, NULL);
}
