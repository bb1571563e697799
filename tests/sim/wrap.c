/* wrap.c - what the code under test takes for threads, waits and sockets (linked with --wrap).
 *
 *   pthread_create()      runs its function up to weft_reactor_run(), which hands the loop to the world
 *   pthread_cond_wait(),  let the world go on; so do usleep(), nanosleep() and a turn that may wait
 *   pthread_join()
 *   connect(), accept4()  both ends of a wire (network.c)
 *   getrandom()           the seed's */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/path/path.h"
#include "network.h"
#include "reactor/internal.h"
#include "scheduler.h"

#define REAL(type, name, ...) type __real_##name(__VA_ARGS__)
#define WRAP(type, name, ...)            \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* --- what is counted -------------------------------------------------------------------------- */

REAL(void, host_probe, struct host_path *path, uint32_t timeout_ms);
unsigned sim_suspicions;

WRAP(void, host_probe, struct host_path *path, uint32_t timeout_ms)
{
	bool before = weft_heap_has(&path->probe.timer.node);

	__real_host_probe(path, timeout_ms);
	sim_suspicions += !before && weft_heap_has(&path->probe.timer.node);
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS_MAX = 32 };

static struct {
	bool used;
	struct weft_reactor *r; /* whose loop it runs; NULL: it has ended */
} threads[THREADS_MAX];
static unsigned current; /* 1 + the one whose function runs */

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
     void *arg)
{
	unsigned i = 0;

	while (i < THREADS_MAX && threads[i].used)
		i++;
	must(i < THREADS_MAX && !current);
	threads[i].used = true;
	current = i + 1;
	fn(arg);
	current = 0;
	*thread = i + 1;
	return 0;
}

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
	return 0;
}

/* The world's node has to be known when a reactor is run; what it does is the world's then. */
WRAP(void, weft_reactor_run, struct weft_reactor *r)
{
	must(current);
	threads[current - 1].r = r;
	sim_add_reactor(r, sim_current_node, NULL, NULL);
}

REAL(void, weft_reactor_stop, struct weft_reactor *r);
WRAP(void, weft_reactor_stop, struct weft_reactor *r)
{
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		if (!threads[i].used || threads[i].r != r)
			continue;
		threads[i].r = NULL;
		sim_remove_reactor(r);
		return;
	}
	__real_weft_reactor_stop(r);
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	while (threads[thread - 1].r)
		sim_step();
	threads[thread - 1].used = false;
	return 0;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	sim_step();
	pthread_mutex_lock(lock);
	return 0;
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void *arg)
{
	return sim_now();
}

REAL(int, weft_reactor_create, struct weft_reactor **r, const struct weft_reactor_options *options,
     struct weft_err *err);
WRAP(int, weft_reactor_create, struct weft_reactor **r, const struct weft_reactor_options *options,
     struct weft_err *err)
{
	struct weft_reactor_options ours = *options;

	ours.engine = WEFT_ENGINE_EPOLL;
	ours.cpu = -1;
	ours.clock = clock_ns;
	return __real_weft_reactor_create(r, &ours, err);
}

REAL(void, weft_reactor_turn, struct weft_reactor *r, int wait_ms);
WRAP(void, weft_reactor_turn, struct weft_reactor *r, int wait_ms)
{
	uint64_t end = sim_now() + (uint64_t)(wait_ms > 0 ? wait_ms : 0) * MS;

	if (wait_ms)
		sim_step();
	__real_weft_reactor_turn(r, 0);
	while (wait_ms > 0 && !weft_reactor_busy(r) && sim_now() < end && !sim_current_node->still)
		sim_step();
}

WRAP(int, usleep, useconds_t us)
{
	sim_run(us * US);
	return 0;
}

WRAP(int, nanosleep, const struct timespec *pause, struct timespec *left)
{
	sim_run((uint64_t)pause->tv_sec * 1000 * MS + (uint64_t)pause->tv_nsec);
	return 0;
}

WRAP(ssize_t, getrandom, void *buf, size_t length, unsigned flags)
{
	for (size_t i = 0; i < length; i++)
		((char *)buf)[i] = (char)sim_random(256);
	return (ssize_t)length;
}

/* --- sockets ---------------------------------------------------------------------------------- */

REAL(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags);

WRAP(int, connect, int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc = network_connect(fd, (const struct sockaddr_in *)addr);

	errno = -rc;
	return rc < 0 ? -1 : 0;
}

WRAP(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int accepted = __real_accept4(fd, addr, len, flags);

	return accepted < 0 ? -1 : network_accept(fd, accepted);
}

REAL(int, getsockname, int fd, struct sockaddr *addr, socklen_t *len);
WRAP(int, getsockname, int fd, struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr_in *name = network_name(fd, true);

	if (!name)
		return __real_getsockname(fd, addr, len);
	memcpy(addr, name, sizeof(*name));
	*len = sizeof(*name);
	return 0;
}

REAL(int, getpeername, int fd, struct sockaddr *addr, socklen_t *len);
WRAP(int, getpeername, int fd, struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr_in *name = network_name(fd, false);

	if (!name)
		return __real_getpeername(fd, addr, len);
	memcpy(addr, name, sizeof(*name));
	*len = sizeof(*name);
	return 0;
}
