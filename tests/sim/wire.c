/* wire.c - a connection is two socket pairs, and what is under way between them is here.
 *
 *   host's fd ═ near[0]   flow 0: bytes, each with the time when it arrives   near[1] ═ target's fd
 *                       ◀─ flow 1
 *
 * A cut wire moves nothing. Bytes that a host had handed to its system but that had not left when it
 * hung up are gone with it; those that had left may arrive, however late. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

enum { PIECE_MAX = 64 << 10, CUTS_MAX = 16, PORT_FIRST = 40000 };

struct piece {
	struct weft_list link;
	uint64_t due_ns;
	bool left; /* its sender's system */
	size_t at, length;
	char bytes[];
};

struct wire {
	struct weft_list link;
	const struct sim_node *host;
	struct sockaddr_in names[2];
	ino_t ends[2]; /* the sockets that the nodes have */
	int near[2];
	struct weft_list flows[2]; /* struct piece */
	bool ended[2];             /* no more comes from this side */
	bool told[2];              /* the other side's end has been passed on to this side */
	uint64_t latency_ns;
	int knock; /* what makes the target accept; -1: it has */
	uint16_t knock_port;
	int far; /* the target's end, until it is accepted */
};

static struct weft_list wires = { &wires, &wires };
static uint16_t next_port = PORT_FIRST;
static struct {
	const struct sim_node *host;
	uint16_t port;
} cuts[CUTS_MAX];
static unsigned ncuts;

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
	for (unsigned i = 0; i < ncuts; i++)
		if (cuts[i].port == port_of(w) && (!cuts[i].host || cuts[i].host == w->host))
			return true;
	return false;
}

/* --- beginning ---------------------------------------------------------------------------- */

static void pair_up(int *node, int *near)
{
	int fds[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	*node = fds[0];
	*near = fds[1];
}

/* A connection that nobody will use tells the target's listener that one has come. */
static int knock(struct wire *w)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	must(fd >= 0);
	rc = __real_connect(fd, (const struct sockaddr *)&w->names[1], sizeof(w->names[1]));
	if (rc < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	must(!__real_getsockname(fd, (struct sockaddr *)&own, &len));
	w->knock = fd;
	w->knock_port = own.sin_port;
	return 0;
}

static struct wire *new_wire(const struct sockaddr_in *to)
{
	struct wire *w = calloc(1, sizeof(*w));

	must(w);
	w->host = world_node;
	w->names[0] = w->names[1] = *to;
	w->names[0].sin_port = htons(next_port++);
	w->latency_ns = 5 * US + world_random(50 * US);
	w->knock = -1;
	weft_list_init(&w->flows[0]);
	weft_list_init(&w->flows[1]);
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
	struct weft_list *link;

	for (int i = 0; i < 2; i++) {
		while ((link = weft_list_pop(&w->flows[i])))
			free(container_of(link, struct piece, link));
		close_fd(&w->near[i]);
	}
	close_fd(&w->knock);
	close_fd(&w->far);
	weft_list_remove(&w->link);
	free(w);
}

int wire_connect(int fd, const struct sockaddr_in *to)
{
	struct wire *w = new_wire(to);
	int end, rc;

	pair_up(&end, &w->near[0]);
	pair_up(&w->far, &w->near[1]);
	w->ends[0] = inode(end);
	w->ends[1] = inode(w->far);
	must(dup3(end, fd, O_CLOEXEC) == fd);
	close(end);
	rc = is_cut(w) ? 0 : knock(w);
	if (rc < 0)
		free_wire(w);
	return rc;
}

int wire_accept(int listener, int fd)
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

const struct sockaddr_in *wire_name(int fd, bool own)
{
	ino_t ino = inode(fd);
	struct wire *w;

	weft_list_for_each(w, &wires, link)
		for (int i = 0; i < 2; i++)
			if (w->ends[i] == ino)
				return &w->names[own ? i : 1 - i];
	return NULL;
}

/* --- moving ------------------------------------------------------------------------------- */

static void drop_what_stayed(struct wire *w, int side)
{
	struct piece *piece, *next;

	weft_list_for_each_safe(piece, next, &w->flows[side], link) {
		if (piece->left)
			continue;
		weft_list_remove(&piece->link);
		free(piece);
	}
}

static void set_off(struct wire *w, struct piece *piece)
{
	piece->left = true;
	piece->due_ns = world_now() + w->latency_ns + world_random(20 * US);
}

/* From a node's socket into the flow. */
static bool collect(struct wire *w, int side)
{
	size_t room = 1 + world_random(PIECE_MAX);
	struct piece *piece;
	ssize_t n;

	if (w->ended[side])
		return false;
	piece = malloc(sizeof(*piece) + room);
	must(piece);
	n = recv(w->near[side], piece->bytes, room, MSG_DONTWAIT);
	if (n > 0) {
		*piece = (struct piece){ .length = (size_t)n };
		if (!is_cut(w))
			set_off(w, piece);
		weft_list_push(&w->flows[side], &piece->link);
		return true;
	}
	free(piece);
	if (n < 0 && errno == EAGAIN)
		return false;
	w->ended[side] = true;
	drop_what_stayed(w, side);
	return true;
}

/* From the flow into the other node's socket. */
static bool deliver(struct wire *w, int side)
{
	struct piece *piece = container_of(w->flows[side].next, struct piece, link);
	ssize_t n;

	if (weft_list_empty(&w->flows[side]))
		return false;
	if (!piece->left)
		set_off(w, piece);
	if (piece->due_ns > world_now())
		return false;
	n = send(w->near[1 - side], piece->bytes + piece->at, piece->length - piece->at,
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return false;
	piece->at += n < 0 ? piece->length : (size_t)n; /* a peer that is gone swallows it */
	if (piece->at >= piece->length) {
		weft_list_remove(&piece->link);
		free(piece);
	}
	return true;
}

static bool pass_on_end(struct wire *w, int side)
{
	if (!w->ended[side] || w->told[1 - side] || !weft_list_empty(&w->flows[side]))
		return false;
	w->told[1 - side] = true;
	shutdown(w->near[1 - side], SHUT_WR);
	return true;
}

static bool move(struct wire *w)
{
	bool moved = false;

	for (int side = 0; side < 2; side++)
		moved |= collect(w, side);
	if (is_cut(w))
		return moved;
	if (w->knock < 0 && w->far >= 0 && knock(w) < 0) {
		free_wire(w);
		return true;
	}
	for (int side = 0; side < 2; side++) {
		moved |= deliver(w, side);
		moved |= pass_on_end(w, side);
	}
	if (w->told[0] && w->told[1])
		free_wire(w);
	return moved;
}

bool wires_move(void)
{
	struct wire *w, *next;
	bool moved = false;

	weft_list_for_each_safe(w, next, &wires, link)
		moved |= move(w);
	return moved;
}

/* When the next bytes arrive that are under way. */
uint64_t wires_due(void)
{
	uint64_t due = UINT64_MAX;
	struct piece *first;
	struct wire *w;

	weft_list_for_each(w, &wires, link) {
		for (int side = 0; side < 2 && !is_cut(w); side++) {
			first = container_of(w->flows[side].next, struct piece, link);
			if (!weft_list_empty(&w->flows[side]) && first->due_ns > world_now() &&
			    first->due_ns < due)
				due = first->due_ns;
		}
	}
	return due;
}

/* --- trouble ------------------------------------------------------------------------------ */

void wires_cut(const struct sim_node *host, uint16_t port)
{
	must(ncuts < CUTS_MAX);
	cuts[ncuts].host = host;
	cuts[ncuts++].port = port;
}

void wires_heal(const struct sim_node *host, uint16_t port)
{
	for (unsigned i = 0; i < ncuts; i++) {
		if (cuts[i].host != host || cuts[i].port != port)
			continue;
		cuts[i] = cuts[--ncuts];
		return;
	}
}

void wires_reset(const struct sim_node *host, uint16_t port)
{
	struct wire *w, *next;

	weft_list_for_each_safe(w, next, &wires, link)
		if (port_of(w) == port && (!host || w->host == host) && !is_cut(w))
			free_wire(w);
}

unsigned wires_count(void)
{
	struct wire *w;
	unsigned n = 0;

	weft_list_for_each(w, &wires, link)
		n++;
	return n;
}
