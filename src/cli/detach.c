/* detach.c - continue in the background after a successful start.
 *
 * The fork comes first, since threads do not survive one; the parent keeps the terminal, its shell
 * and the child's stderr until the child says through a pipe that it works. */
#include "cli/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static _Noreturn void wait_for_child(pid_t child, int said)
{
	int status;
	char byte;

	if (read(said, &byte, 1) == 1)
		_exit(EXIT_OK);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(EXIT_FAILED);
}

int weft_detach(void)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (child > 0) {
		close(ends[1]);
		wait_for_child(child, ends[0]);
	}
	close(ends[0]);
	return ends[1];
}

bool weft_detach_may_keep(void)
{
	struct stat st;

	return !fstat(STDERR_FILENO, &st) && (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

static void detach_stdio(int log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (log != STDERR_FILENO)
		dup2(log < 0 ? null : log, STDERR_FILENO);
	close(null);
}

void weft_detach_done(int handle, int log)
{
	detach_stdio(log);
	if (write(handle, "", 1) != 1) {
		/* The parent is gone; so is whoever would want to know. */
	}
	close(handle);
}
