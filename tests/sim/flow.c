/* flow.c - pieces of a stream, each with the time when it arrives.
 *
 * Bytes that a node had handed to its system but that had not left when it hung up are gone with
 * it; those that had left may arrive, however late. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "scheduler.h"

enum { PIECE_MAX = 64 << 10 };

struct piece {
	struct weft_list link;
	uint64_t due_ns;
	bool left; /* its sender's system */
	size_t at, length;
	char bytes[];
};

void flow_init(struct flow *f, uint64_t latency_ns)
{
	weft_list_init(&f->pieces);
	f->latency_ns = latency_ns;
}

static struct piece *first(const struct flow *f)
{
	return flow_is_empty(f) ? NULL : container_of(f->pieces.next, struct piece, link);
}

bool flow_is_empty(const struct flow *f)
{
	return weft_list_empty(&f->pieces);
}

static void free_piece(struct piece *piece)
{
	weft_list_remove(&piece->link);
	free(piece);
}

void flow_drop(struct flow *f)
{
	while (first(f))
		free_piece(first(f));
}

static void drop_what_stayed(struct flow *f)
{
	struct piece *piece, *next;

	weft_list_for_each_safe(piece, next, &f->pieces, link)
		if (!piece->left)
			free_piece(piece);
}

static void set_off(struct flow *f, struct piece *piece)
{
	piece->left = true;
	piece->due_ns = sim_now() + f->latency_ns + sim_random(20 * US);
}

int flow_take(struct flow *f, int fd, bool held)
{
	size_t room = 1 + sim_random(PIECE_MAX);
	struct piece *piece = malloc(sizeof(*piece) + room);
	ssize_t n;

	must(piece);
	n = recv(fd, piece->bytes, room, MSG_DONTWAIT);
	if (n > 0) {
		*piece = (struct piece){ .length = (size_t)n };
		weft_list_push(&f->pieces, &piece->link);
		if (!held)
			set_off(f, piece);
		return (int)n;
	}
	free(piece);
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	drop_what_stayed(f);
	return 0;
}

bool flow_give(struct flow *f, int fd)
{
	struct piece *piece = first(f);
	ssize_t n;

	if (piece && !piece->left)
		set_off(f, piece);
	if (!piece || piece->due_ns > sim_now())
		return false;
	n = send(fd, piece->bytes + piece->at, piece->length - piece->at,
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return false;
	piece->at += n < 0 ? piece->length : (size_t)n;
	if (piece->at >= piece->length)
		free_piece(piece);
	return true;
}

uint64_t flow_due(const struct flow *f)
{
	return first(f) && first(f)->due_ns > sim_now() ? first(f)->due_ns : UINT64_MAX;
}
