/* chunks.c - what a connection receives into: one chunk that is its own, and spare ones.
 *
 *   it has none ─▶ its own, at once
 *   its chunk is full, and commands keep it ─┬─▶ a spare one ─▶ back when the commands have ended
 *                                            └ none for its share ─▶ wait ─▶ the share's turn,
 *                                                                   or the commands have ended
 *
 * A command keeps the chunk that its data came in until it is answered, and a host can send thousands
 * that last. So the spare chunks of a reactor have a limit, and a share has three quarters of them at
 * most: others find some, and whatever they find, each connection can receive. Shares that wait take
 * turns.
 *
 * Which chunk of a connection is its own does not matter: it is the last one that it has.
 *
 * Invariant: as many chunks are in use as there are connections that have one, and group->spares. A
 * keeper is on group->wanting while a connection of it waits, and it may have one more. */
#include <assert.h>
#include <string.h>

#include "transport/tcp/tcp.h"

enum { SHARE_MAX = TCP_SPARES / 4 * 3 };

/* --- taking ----------------------------------------------------------------------------------- */

static void use_chunk(struct tcp_conn *conn)
{
	struct tcp_chunk *old = conn->chunk, *fresh = weft_pool_take(&conn->qp.group->chunks);

	assert(fresh); /* tcp_chunks_for() */
	conn->nchunks++;
	fresh->refs = 1;
	fresh->head = fresh->tail = 0;
	if (old) {
		fresh->tail = old->tail - old->head;
		memcpy(fresh->data, old->data + old->head, fresh->tail);
		tcp_chunk_put(conn, &conn->chunk);
	}
	conn->chunk = fresh;
}

static void use_spare(struct tcp_conn *conn)
{
	conn->qp.group->spares++;
	conn->qp.keeper->spares++;
	use_chunk(conn);
}

bool tcp_chunk_take(struct tcp_conn *conn)
{
	struct weft_keeper *keeper = conn->qp.keeper;

	if (!conn->nchunks) {
		use_chunk(conn);
		return true;
	}
	if (!keeper || !weft_list_empty(&keeper->waiting) || keeper->spares >= SHARE_MAX ||
	    conn->qp.group->spares >= TCP_SPARES || !weft_list_empty(&conn->qp.group->wanting))
		return false;
	use_spare(conn);
	return true;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void update_wanting(struct weft_group *group, struct weft_keeper *keeper)
{
	bool wants = !weft_list_empty(&keeper->waiting) && keeper->spares < SHARE_MAX;

	if (!wants)
		weft_list_remove(&keeper->link);
	else if (weft_list_empty(&keeper->link))
		weft_list_push(&group->wanting, &keeper->link);
}

/* Who was not let in has no spare chunk: it waits for its own commands. */
void tcp_chunk_wait(struct tcp_conn *conn)
{
	struct weft_group *group = conn->qp.group;
	struct weft_keeper *keeper = conn->qp.keeper;

	conn->rx_waits_chunk = true;
	if (!keeper)
		return;
	weft_list_push(&keeper->waiting, &conn->waits_chunk);
	update_wanting(group, keeper);
	weft_group_watch_holders(group);
}

void tcp_chunk_unwait(struct tcp_conn *conn)
{
	if (!conn->rx_waits_chunk)
		return;
	conn->rx_waits_chunk = false;
	weft_list_remove(&conn->waits_chunk);
	if (conn->qp.keeper)
		update_wanting(conn->qp.group, conn->qp.keeper);
}

void tcp_chunks_serve(struct weft_group *group)
{
	struct weft_list *link;

	while (group->spares < TCP_SPARES && (link = weft_list_pop(&group->wanting))) {
		struct weft_keeper *keeper = container_of(link, struct weft_keeper, link);
		struct tcp_conn *conn = container_of(keeper->waiting.next, struct tcp_conn,
						     waits_chunk);

		use_spare(conn);
		tcp_chunk_unwait(conn);
		weft_reactor_defer(group->reactor, &conn->parse_again);
	}
}

/* --- and giving back -------------------------------------------------------------------------- */

/* Half of a fused pair waits for the next command, which needs room. */
static bool is_kept_by_half(const struct tcp_conn *conn)
{
	struct weft_req *half = conn->qp.awaits_next;

	return conn->chunk->refs == 2 && half && tcp_req_of(half)->chunk == conn->chunk;
}

/* The data of that half lies before what is not parsed, and nobody looks at it yet. */
bool tcp_chunk_squeeze(struct tcp_conn *conn)
{
	struct tcp_chunk *chunk = conn->chunk;
	uint32_t kept = 0, left = chunk->tail - chunk->head;

	if (is_kept_by_half(conn)) {
		struct weft_req *half = conn->qp.awaits_next;

		kept = tcp_sgl_len(half);
		memmove(chunk->data, half->data, kept);
		half->data = chunk->data;
	} else if (chunk->refs > 1) {
		return false;
	}
	memmove(chunk->data + kept, chunk->data + chunk->head, left);
	chunk->head = kept;
	chunk->tail = kept + left;
	return true;
}

static void give(struct tcp_conn *conn, struct tcp_chunk *chunk)
{
	struct weft_group *group = conn->qp.group;

	weft_pool_give(&group->chunks, chunk);
	if (!--conn->nchunks) /* its own */
		return;
	group->spares--;
	conn->qp.keeper->spares--;
	update_wanting(group, conn->qp.keeper);
	if (!weft_list_empty(&group->wanting))
		weft_reactor_defer(group->reactor, &group->serve);
}

/* The commands that kept a connection's chunk have ended, or the one that does is half of a pair now: it
 * needs no other one. */
void tcp_chunk_look_again(struct tcp_conn *conn)
{
	if (!conn->rx_waits_chunk || (conn->chunk->refs > 1 && !is_kept_by_half(conn)))
		return;
	tcp_chunk_unwait(conn);
	weft_reactor_defer(conn->qp.group->reactor, &conn->parse_again);
}

void tcp_chunk_put(struct tcp_conn *conn, struct tcp_chunk **chunk)
{
	struct tcp_chunk *old = *chunk;

	*chunk = NULL;
	if (!old)
		return;
	if (!--old->refs)
		give(conn, old);
	else if (old == conn->chunk)
		tcp_chunk_look_again(conn);
}
