/* budget_world.c - what bench/budget puts below the code that it measures (linked with --wrap).
 *
 *   connect(), accept4()    both ends of a socket pair: what one has sent the other can receive at
 *                           once, with no network in between that has a say in how much of it
 *   clock_gettime()         while something is counted, a clock that goes on by the step
 *   pthread_create()        of a controller's control reactor: up to weft_reactor_run(); then whoever waits
 *   pthread_cond_wait(),    turns it, and the target, too
 *   weft_reactor_turn(), …
 *
 * So everything is in one thread, in the same order every time, and nobody waits to be scheduled. A
 * connection that nobody will use, a knock, makes the target accept. */
#include "budget_world.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "budget_target.h"
#include "host/internal.h"
#include "reactor/internal.h"

#define REAL(type, name, ...) type __real_##name(__VA_ARGS__)
#define WRAP(type, name, ...)            \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

enum { PAIRS_MAX = 1200, SEND_BYTES = 212992, CONTROLS_MAX = 64 };

pthread_t budget_world_thread;
void (*budget_world_target)(void) = budget_target_step;

/* What is connected first is accepted first. */
static struct {
	int near, far;
} pairs[PAIRS_MAX];
static unsigned made, connected, accepted;
static struct sockaddr_in name = { .sin_family = AF_INET }; /* of all ends */

static void must(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "budget: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- sockets ---------------------------------------------------------------------------------- */

REAL(int, connect, int fd, const struct sockaddr *addr, socklen_t len);
REAL(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags);
REAL(int, getsockname, int fd, struct sockaddr *addr, socklen_t *len);
REAL(int, getpeername, int fd, struct sockaddr *addr, socklen_t *len);

static void set_room(int fd)
{
	int bytes = SEND_BYTES;

	must(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), "SO_SNDBUF");
}

static void make_pair(int ends[2])
{
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
	     "socketpair");
	set_room(ends[0]);
	set_room(ends[1]);
}

size_t budget_world_room(void)
{
	static char data[65536];
	size_t taken = 0;
	int ends[2];
	ssize_t n;

	make_pair(ends);
	while ((n = send(ends[0], data, sizeof(data), MSG_NOSIGNAL)) > 0)
		taken += (size_t)n;
	close(ends[0]);
	close(ends[1]);
	return taken;
}

void budget_world_pairs(unsigned count)
{
	int ends[2];

	if (made == connected)
		made = connected = accepted = 0;
	must(made + count <= PAIRS_MAX, "too many connections");
	while (count--) {
		make_pair(ends);
		pairs[made].near = ends[0];
		pairs[made++].far = ends[1];
	}
}

static void become(int fd, int end)
{
	must(dup3(end, fd, O_CLOEXEC) == fd, "dup3");
	close(end);
}

static void knock(const struct sockaddr *addr, socklen_t len)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !__real_connect(fd, addr, len), "connect");
	close(fd);
}

WRAP(int, connect, int fd, const struct sockaddr *addr, socklen_t len)
{
	must(connected < made, "more connections than were told of");
	memcpy(&name, addr, sizeof(name));
	become(fd, pairs[connected++].near);
	knock(addr, len);
	return 0;
}

WRAP(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int end = __real_accept4(fd, addr, len, flags);

	if (end >= 0)
		become(end, pairs[accepted++].far);
	return end;
}

static int rename_pair(int rc, struct sockaddr *addr, socklen_t *len)
{
	if (rc < 0 || addr->sa_family != AF_UNIX)
		return rc;
	memcpy(addr, &name, sizeof(name));
	*len = sizeof(name);
	return 0;
}

WRAP(int, getsockname, int fd, struct sockaddr *addr, socklen_t *len)
{
	return rename_pair(__real_getsockname(fd, addr, len), addr, len);
}

WRAP(int, getpeername, int fd, struct sockaddr *addr, socklen_t *len)
{
	return rename_pair(__real_getpeername(fd, addr, len), addr, len);
}

/* --- threads ---------------------------------------------------------------------------------- */

static struct weft_reactor *controls[CONTROLS_MAX]; /* NULL: it has ended, or never was */
static pthread_t starting;                          /* 1 + the one whose function runs */

REAL(void, weft_reactor_turn, struct weft_reactor *r, int wait_ms);

/* Everybody else has a turn. */
static void step(void)
{
	for (unsigned i = 0; i < CONTROLS_MAX; i++)
		if (controls[i] && !controls[i]->turning)
			__real_weft_reactor_turn(controls[i], 0);
	budget_world_target();
}

WRAP(void, weft_reactor_turn, struct weft_reactor *r, int wait_ms)
{
	if (wait_ms)
		step();
	__real_weft_reactor_turn(r, 0);
}

static unsigned find_control(const struct weft_reactor *r)
{
	unsigned i = 0;

	while (i < CONTROLS_MAX && controls[i] != r)
		i++;
	return i;
}

REAL(int, host_control_start, struct weft_ctrl *ctrl, struct weft_err *err);
WRAP(int, host_control_start, struct weft_ctrl *ctrl, struct weft_err *err)
{
	int rc;

	starting = 1 + find_control(NULL);
	must(starting <= CONTROLS_MAX, "too many controllers");
	rc = __real_host_control_start(ctrl, err);
	starting = 0;
	return rc;
}

REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
     void *arg);
WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
     void *arg)
{
	if (!starting)
		return __real_pthread_create(thread, attr, fn, arg);
	*thread = starting;
	fn(arg);
	return 0;
}

REAL(int, pthread_setname_np, pthread_t thread, const char *text);
WRAP(int, pthread_setname_np, pthread_t thread, const char *text)
{
	return thread <= CONTROLS_MAX ? 0 : __real_pthread_setname_np(thread, text);
}

REAL(void, weft_reactor_run, struct weft_reactor *r);
WRAP(void, weft_reactor_run, struct weft_reactor *r)
{
	if (!starting)
		__real_weft_reactor_run(r);
	else
		controls[starting - 1] = r;
}

REAL(void, weft_reactor_stop, struct weft_reactor *r);
WRAP(void, weft_reactor_stop, struct weft_reactor *r)
{
	unsigned i = find_control(r);

	if (i < CONTROLS_MAX)
		controls[i] = NULL;
	else
		__real_weft_reactor_stop(r);
}

REAL(int, pthread_join, pthread_t thread, void **result);
WRAP(int, pthread_join, pthread_t thread, void **result)
{
	if (thread > CONTROLS_MAX)
		return __real_pthread_join(thread, result);
	while (controls[thread - 1])
		step();
	return 0;
}

REAL(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex);
WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!pthread_equal(pthread_self(), budget_world_thread))
		return __real_pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	step();
	pthread_mutex_lock(mutex);
	return 0;
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t now_ns; /* 0: as it really is */

REAL(int, clock_gettime, clockid_t id, struct timespec *ts);
WRAP(int, clock_gettime, clockid_t id, struct timespec *ts)
{
	if (!now_ns)
		return __real_clock_gettime(id, ts);
	*ts = (struct timespec){ (time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000) };
	return 0;
}

void budget_clock_hold(void)
{
	struct timespec ts;

	__real_clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void budget_clock_step(uint64_t ns)
{
	now_ns += ns;
}

void budget_clock_release(void)
{
	now_ns = 0;
}
