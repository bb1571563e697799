/* relay.c - a way to a target that a test can cut, silence or close. */
#include "peer/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "must.h"

enum { PAIRS_MAX = 256, CHUNK = 64 << 10, LISTENER = 0, WAKE = 1, FIRST = 2 };

struct relay {
	int listener, wake;
	uint16_t port; /* of the target */
	char address[64];
	pthread_t thread;
	int pairs[PAIRS_MAX][2];
	unsigned npairs;

	atomic_int mode;
	atomic_bool cut, stop;
	atomic_uint connections;
	_Atomic uint64_t bytes;
};

static int to_loopback(int fd, uint16_t port, int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return call(fd, (struct sockaddr *)&at, sizeof(at));
}

/* With a reset, not with a good-bye. */
static void reset_conn(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/* --- pairs of sockets ------------------------------------------------------------------------- */

static void end_pair(struct relay *r, unsigned i)
{
	reset_conn(r->pairs[i][0]);
	reset_conn(r->pairs[i][1]);
	r->npairs--;
	memmove(r->pairs[i], r->pairs[r->npairs], sizeof(r->pairs[i]));
	atomic_store(&r->connections, r->npairs);
}

static void take_one(struct relay *r)
{
	int host = accept(r->listener, NULL, NULL), target;

	if (host < 0)
		return;
	target = socket(AF_INET, SOCK_STREAM, 0);
	must(target >= 0);
	if (atomic_load(&r->mode) == RELAY_REFUSE || r->npairs == PAIRS_MAX ||
	    to_loopback(target, r->port, connect) < 0) {
		reset_conn(host);
		reset_conn(target);
		return;
	}
	r->pairs[r->npairs][0] = host;
	r->pairs[r->npairs++][1] = target;
	atomic_store(&r->connections, r->npairs);
}

/* false: one of the two is gone. */
static bool forward(struct relay *r, const int *pair, int from)
{
	char chunk[CHUNK];
	ssize_t len = recv(pair[from], chunk, sizeof(chunk), MSG_DONTWAIT), sent = 0;

	if (len < 0 && errno == EAGAIN)
		return true;
	for (ssize_t n; len > sent && sent >= 0; sent = n < 0 ? -1 : sent + n)
		n = send(pair[!from], chunk + sent, (size_t)(len - sent), MSG_NOSIGNAL);
	if (sent > 0)
		atomic_fetch_add(&r->bytes, (uint64_t)sent);
	return len > 0 && sent == len;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void apply_cut(struct relay *r)
{
	eventfd_t value;

	eventfd_read(r->wake, &value);
	if (!atomic_load(&r->cut))
		return;
	while (r->npairs)
		end_pair(r, 0);
	atomic_store(&r->cut, false);
}

/* From the last on, so that those still to come keep their places. */
static void forward_all(struct relay *r, const struct pollfd *fds, unsigned npairs)
{
	for (unsigned i = npairs; i-- > 0;) {
		const struct pollfd *fd = &fds[FIRST + 2 * i];

		if ((fd[0].revents && !forward(r, r->pairs[i], 0)) ||
		    (fd[1].revents && !forward(r, r->pairs[i], 1)))
			end_pair(r, i);
	}
}

static void relay_poll(struct relay *r, struct pollfd *fds)
{
	int mode = atomic_load(&r->mode);
	bool hold = mode == RELAY_HOLD;
	unsigned npairs = hold ? 0 : r->npairs;

	fds[LISTENER] = (struct pollfd){ .fd = hold ? -1 : r->listener, .events = POLLIN };
	fds[WAKE] = (struct pollfd){ .fd = r->wake, .events = POLLIN };
	for (unsigned i = 0; i < 2 * npairs; i++) /* the host's end, the target's */
		fds[FIRST + i] = (struct pollfd){ .fd = mode == RELAY_NO_ANSWERS && i % 2 ?
								-1 :
								r->pairs[i / 2][i % 2],
						  .events = POLLIN };
	poll(fds, FIRST + 2 * npairs, -1);
	if (fds[WAKE].revents) {
		apply_cut(r);
		return;
	}
	forward_all(r, fds, npairs);
	if (fds[LISTENER].revents)
		take_one(r);
}

static void *relay_thread_main(void *arg)
{
	static _Thread_local struct pollfd fds[FIRST + 2 * PAIRS_MAX];
	struct relay *r = arg;

	while (!atomic_load(&r->stop))
		relay_poll(r, fds);
	return NULL;
}

/* --- its life --------------------------------------------------------------------------------- */

struct relay *relay_start(const char *address)
{
	struct relay *r = calloc(1, sizeof(*r));
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	must(r);
	r->port = (uint16_t)atoi(strrchr(address, ':') + 1);
	r->listener = socket(AF_INET, SOCK_STREAM, 0);
	r->wake = eventfd(0, EFD_NONBLOCK);
	must(r->listener >= 0 && r->wake >= 0);
	must(!to_loopback(r->listener, 0, bind) && !listen(r->listener, 64));
	must(!getsockname(r->listener, (struct sockaddr *)&at, &len));
	snprintf(r->address, sizeof(r->address), "nvme+tcp://127.0.0.1:%u", ntohs(at.sin_port));
	must(!pthread_create(&r->thread, NULL, relay_thread_main, r));
	return r;
}

static void wake_thread(struct relay *r)
{
	eventfd_write(r->wake, 1);
}

void relay_stop(struct relay *r)
{
	atomic_store(&r->stop, true);
	wake_thread(r);
	pthread_join(r->thread, NULL);
	while (r->npairs)
		end_pair(r, 0);
	close(r->listener);
	close(r->wake);
	free(r);
}

const char *relay_address(const struct relay *r)
{
	return r->address;
}

void relay_mode(struct relay *r, enum relay_mode mode)
{
	atomic_store(&r->mode, mode);
	wake_thread(r);
}

void relay_cut_soon(struct relay *r)
{
	atomic_store(&r->cut, true);
	wake_thread(r);
}

void relay_cut(struct relay *r)
{
	relay_cut_soon(r);
	while (atomic_load(&r->cut))
		usleep(100);
}

void relay_cut_then(struct relay *r, enum relay_mode mode)
{
	relay_mode(r, RELAY_HOLD);
	relay_cut(r);
	relay_mode(r, mode);
}

unsigned relay_connections(struct relay *r)
{
	return atomic_load(&r->connections);
}

uint64_t relay_bytes(struct relay *r)
{
	return atomic_load(&r->bytes);
}
