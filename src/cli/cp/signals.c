/* signals.c - SIGINT, SIGTERM and SIGHUP stop the copy; pieces under way are finished first.
 *
 * A handler can use globals only: there is one copy in the process. */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/debounce.h"
#include "cli/cp/internal.h"

#define PATIENCE_S 5

static atomic_int first, count;
static weft_signal_debounce last;
static int wake_fd = -1;

static void on_cancel_signal(int number)
{
	int saved = errno, none = 0;

	if (weft_signal_is_bounce_now(&last))
		return;
	atomic_compare_exchange_strong(&first, &none, number);
	atomic_fetch_add(&count, 1);
	eventfd_write(wake_fd, 1);
	errno = saved;
}

/* Only interrupts a system call that blocks. */
static void on_wake(int number)
{
	(void)number;
}

int weft_cp_signals_init(int wake)
{
	struct sigaction stop = { .sa_handler = on_cancel_signal };
	struct sigaction nudge = { .sa_handler = on_wake };

	wake_fd = wake;
	signal(SIGPIPE, SIG_IGN);
	if (sigaction(SIGINT, &stop, NULL) < 0 || sigaction(SIGTERM, &stop, NULL) < 0 ||
	    sigaction(SIGHUP, &stop, NULL) < 0 || sigaction(SIGUSR1, &nudge, NULL) < 0)
		return -errno;
	return 0;
}

int weft_cp_signal(void)
{
	return first;
}

bool weft_cp_must_exit(void)
{
	static double since_s;

	if (!first)
		return false;
	if (!since_s)
		since_s = weft_now_s();
	return count > 1 || weft_now_s() > since_s + PATIENCE_S;
}
