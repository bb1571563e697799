/* network.c - a connection is two socket pairs, and what is under way between them (flow.c).
 *
 *   host's fd ═ near[0]   flow 0: bytes, each with the time when it arrives   near[1] ═ target's fd
 *                       ◀─ flow 1
 *
 * A cut wire moves nothing. A target that was killed has no end any more: what is sent to it is
 * swallowed. */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow.h"
#include "ports.h"
#include "scheduler.h"

enum { PORT_FIRST = 40000, EVENTS_MAX = 256 };

struct wire {
	struct weft_list link;
	const struct sim_node *host;
	struct sockaddr_in names[2];
	struct sockaddr_in listener; /* as the target has it */
	ino_t ends[2];               /* the sockets that the nodes have */
	int near[2];
	bool waits[2];        /* something can be received from near[] */
	struct flow flows[2]; /* from this side */
	bool ended[2];        /* no more comes from this side */
	bool told[2];         /* the other side's end has been passed on to this side */
	int knock;            /* what makes the target accept; -1: it has */
	uint16_t knock_port;
	int far;   /* the target's end, until it is accepted */
	bool mute; /* the target's machine is gone, and nobody told the host */
};

static struct weft_list wires = { &wires, &wires };
static uint16_t next_port = PORT_FIRST;
static int watch = -1; /* epoll, of near[] of all */

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __real_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

static ino_t inode(int fd)
{
	struct stat st;

	must(!fstat(fd, &st));
	return st.st_ino;
}

static uint16_t port_of(const struct wire *w)
{
	return ntohs(w->names[1].sin_port);
}

static bool is_cut(const struct wire *w)
{
	return w->mute || port_is_cut(w->host, port_of(w));
}

/* The target has not heard of it yet. */
static bool is_on_its_way(const struct wire *w)
{
	return w->far >= 0 && w->knock < 0;
}

static bool is_reachable(const struct wire *w)
{
	return !is_cut(w) && port_state(port_of(w)) != PORT_SILENT;
}

/* --- beginning -------------------------------------------------------------------------------- */

/* Returns the node's socket. */
static int pair_up(struct wire *w, int side)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &w->waits[side] };
	int fds[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	if (watch < 0)
		watch = epoll_create1(EPOLL_CLOEXEC);
	must(!epoll_ctl(watch, EPOLL_CTL_ADD, fds[1], &event));
	w->near[side] = fds[1];
	w->ends[side] = inode(fds[0]);
	return fds[0];
}

/* A connection that nobody will use tells the target's listener that one has come. */
static int request_accept(struct wire *w)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	int fd;

	if (port_state(port_of(w)) == PORT_REFUSES)
		return -ECONNREFUSED;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	w->listener = w->names[1];
	w->listener.sin_port = htons(port_really(port_of(w)));
	must(fd >= 0);
	must(!__real_connect(fd, (const struct sockaddr *)&w->listener, sizeof(w->listener)));
	must(!__real_getsockname(fd, (struct sockaddr *)&own, &len));
	w->knock = fd;
	w->knock_port = own.sin_port;
	return 0;
}

static struct wire *new_wire(const struct sockaddr_in *to)
{
	uint64_t latency_ns = 5 * US + sim_random(50 * US);
	struct wire *w = calloc(1, sizeof(*w));

	must(w);
	w->host = sim_current_node;
	w->names[0] = w->names[1] = *to;
	w->names[0].sin_port = htons(next_port++);
	w->knock = -1;
	flow_init(&w->flows[0], latency_ns);
	flow_init(&w->flows[1], latency_ns);
	weft_list_push(&wires, &w->link);
	return w;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_wire(struct wire *w)
{
	for (int i = 0; i < 2; i++) {
		flow_drop(&w->flows[i]);
		close_fd(&w->near[i]);
	}
	close_fd(&w->knock);
	close_fd(&w->far);
	weft_list_remove(&w->link);
	free(w);
}

int network_connect(int fd, const struct sockaddr_in *to)
{
	struct wire *w = new_wire(to);
	int end = pair_up(w, 0), rc;

	w->far = pair_up(w, 1);
	must(dup3(end, fd, O_CLOEXEC) == fd);
	close(end);
	rc = is_reachable(w) ? request_accept(w) : 0;
	if (rc < 0)
		free_wire(w);
	return rc;
}

int network_accept(int listener, int fd)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	struct wire *w;

	if (__real_getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
		goto gone;
	weft_list_for_each(w, &wires, link) {
		if (w->knock < 0 || w->knock_port != peer.sin_port)
			continue;
		close_fd(&w->knock);
		must(dup3(w->far, fd, O_CLOEXEC) == fd);
		close_fd(&w->far);
		return fd;
	}
gone:
	close(fd);
	errno = ECONNABORTED;
	return -1;
}

const struct sockaddr_in *network_name(int fd, bool own)
{
	ino_t ino = inode(fd);
	struct wire *w;

	weft_list_for_each(w, &wires, link)
		for (int i = 0; i < 2; i++)
			if (w->ends[i] == ino)
				return i && own ? &w->listener : &w->names[own ? i : 1 - i];
	return NULL;
}

/* --- moving ----------------------------------------------------------------------------------- */

/* From a node's socket into the flow. */
static bool collect(struct wire *w, int side)
{
	int rc;

	if (w->ended[side] || !w->waits[side])
		return false;
	w->waits[side] = false;
	rc = flow_take(&w->flows[side], w->near[side], is_cut(w));
	if (rc == 0) {
		epoll_ctl(watch, EPOLL_CTL_DEL, w->near[side], NULL);
		w->ended[side] = true;
	}
	return rc >= 0;
}

static bool pass_on_end(struct wire *w, int side)
{
	if (!w->ended[side] || w->told[1 - side] || !flow_is_empty(&w->flows[side]))
		return false;
	w->told[1 - side] = true;
	shutdown(w->near[1 - side], SHUT_WR);
	return true;
}

static bool move_bytes(struct wire *w)
{
	bool moved = false;

	for (int side = 0; side < 2; side++)
		moved |= collect(w, side);
	if (((w->mute || is_on_its_way(w)) && w->ended[0]) || /* nobody will ever know of it */
	    (is_on_its_way(w) && is_reachable(w) && request_accept(w) < 0)) {
		free_wire(w);
		return true;
	}
	if (is_cut(w) || is_on_its_way(w))
		return moved;
	for (int side = 0; side < 2; side++) {
		moved |= flow_give(&w->flows[side], w->near[1 - side]);
		moved |= pass_on_end(w, side);
	}
	if (w->told[0] && w->told[1])
		free_wire(w);
	return moved;
}

/* Sockets that have something; asking each of them would cost most of all time. */
static void poll_epoll(void)
{
	struct epoll_event events[EVENTS_MAX];
	int n = watch < 0 ? 0 : epoll_wait(watch, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++)
		*(bool *)events[i].data.ptr = true;
}

bool network_move(void)
{
	struct wire *w, *next;
	bool moved = false;

	poll_epoll();
	weft_list_for_each_safe(w, next, &wires, link)
		moved |= move_bytes(w);
	return moved;
}

uint64_t network_due(void)
{
	uint64_t due = UINT64_MAX;
	struct wire *w;

	weft_list_for_each(w, &wires, link)
		for (int side = 0; side < 2 && !is_cut(w); side++)
			if (flow_due(&w->flows[side]) < due)
				due = flow_due(&w->flows[side]);
	return due;
}

/* --- trouble ---------------------------------------------------------------------------------- */

void network_reset(const struct sim_node *host, uint16_t port)
{
	struct wire *w, *next;

	weft_list_for_each_safe(w, next, &wires, link)
		if (port_of(w) == port && (!host || w->host == host) && !is_cut(w))
			free_wire(w);
}

static void abandon(struct wire *w, bool silent)
{
	if (is_on_its_way(w))
		return;
	if (w->far >= 0 && !silent) { /* nobody had accepted it */
		free_wire(w);
		return;
	}
	close_fd(&w->knock);
	close_fd(&w->far);
	close_fd(&w->near[1]);
	w->ended[1] = w->told[1] = true;
	flow_drop(&w->flows[0]);
	if (silent)
		flow_drop(&w->flows[1]);
	w->mute = silent;
}

void network_abandon(uint16_t port, bool silent)
{
	struct wire *w, *next;

	weft_list_for_each_safe(w, next, &wires, link)
		if (port_of(w) == port && !w->mute)
			abandon(w, silent);
}

void network_revive(uint16_t port)
{
	struct wire *w, *next;

	weft_list_for_each_safe(w, next, &wires, link)
		if (port_of(w) == port && w->mute)
			free_wire(w);
}

unsigned network_count(void)
{
	struct wire *w;
	unsigned n = 0;

	weft_list_for_each(w, &wires, link)
		n++;
	return n;
}
