/* chunks.c - receive memory: each connection receives into one chunk of its own, and spare ones.
 *
 *   it has none ─▶ its own, at once
 *   its chunk is full, and commands pin it ─┬─▶ a spare one ─▶ back when these commands have ended
 *                                           └ none for its tenant ─▶ wait ─▶ the tenant's turn, or
 *                                                                    the commands have ended
 *
 * A command pins the chunk that its data came in until it is answered. A host can send thousands of
 * commands that take long, so a reactor's spare chunks are limited, and one tenant may have three
 * quarters of them. Tenants that wait take turns. Each connection can always receive into its own.
 *
 * Which chunk is the connection's own is not recorded: it is the last one left.
 *
 * Invariant: the chunks in use are one for each connection that has any, and @spare_chunks, which
 * are the sum of what tenants have pinned. A quota is on @quota_waiters while one of its connections
 * waits and it may have one more. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp.h"

enum { TENANT_SPARES_MAX = TCP_SPARE_CHUNKS / 4 * 3 };

/* --- the chunks of a reactor ------------------------------------------------------------------ */

struct tcp_poll_group *tcp_poll_group_of(const struct weft_poll_group *group)
{
	return group->own[weft_transport_index(&weft_tcp)];
}

int tcp_poll_group_create(struct weft_poll_group *group, uint32_t qpairs_max)
{
	struct tcp_poll_group *poll_group = calloc(1, sizeof(*poll_group));
	int rc = -ENOMEM;

	if (poll_group)
		rc = weft_pool_init(&poll_group->chunks, TCP_CHUNK_BYTES,
				    qpairs_max + TCP_SPARE_CHUNKS, NULL, NULL);
	if (rc < 0) {
		free(poll_group);
		return rc;
	}
	weft_list_init(&poll_group->quota_waiters);
	group->own[weft_transport_index(&weft_tcp)] = poll_group;
	return 0;
}

void tcp_poll_group_destroy(struct weft_poll_group *group)
{
	struct tcp_poll_group *poll_group = tcp_poll_group_of(group);

	weft_pool_destroy(&poll_group->chunks);
	free(poll_group);
}

/* --- taking ----------------------------------------------------------------------------------- */

static void switch_to_new_chunk(struct tcp_conn *conn)
{
	struct tcp_chunk *old = conn->chunk, *fresh = weft_pool_take(&conn->poll_group->chunks);
	struct tcp_stream *stream = &conn->stream;
	uint32_t left = stream->tail - stream->head;

	assert(fresh); /* one for every connection, and the spare ones */
	conn->nchunks++;
	fresh->refs = 1;
	if (old) {
		memcpy(fresh->data, stream->buf + stream->head, left);
		tcp_chunk_put(conn, &conn->chunk);
	}
	conn->chunk = fresh;
	stream->buf = fresh->data;
	stream->size = TCP_CHUNK_DATA;
	stream->head = 0;
	stream->tail = left;
}

static void switch_to_spare_chunk(struct tcp_conn *conn)
{
	conn->poll_group->spare_chunks++;
	conn->qp.rx_part->pinned++;
	switch_to_new_chunk(conn);
}

bool tcp_chunk_take(struct tcp_conn *conn)
{
	struct weft_rx_part *part = conn->qp.rx_part;

	if (!conn->nchunks) {
		switch_to_new_chunk(conn);
		return true;
	}
	if (!part || !weft_list_empty(&part->waiting) || part->pinned >= TENANT_SPARES_MAX ||
	    conn->poll_group->spare_chunks >= TCP_SPARE_CHUNKS ||
	    !weft_list_empty(&conn->poll_group->quota_waiters))
		return false;
	switch_to_spare_chunk(conn);
	return true;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void update_quota_waiters(struct tcp_poll_group *poll_group, struct weft_rx_part *part)
{
	bool wants = !weft_list_empty(&part->waiting) && part->pinned < TENANT_SPARES_MAX;

	if (!wants)
		weft_list_remove(&part->link);
	else if (weft_list_empty(&part->link))
		weft_list_push(&poll_group->quota_waiters, &part->link);
}

/* A peer that is not admitted gets no spare chunk: it waits until its own commands have ended. */
void tcp_chunk_wait(struct tcp_conn *conn)
{
	struct weft_rx_part *part = conn->qp.rx_part;

	tcp_rx_enter(conn, TCP_RX_WAITS_CHUNK);
	if (!part)
		return;
	weft_list_push(&part->waiting, &conn->chunk_wait);
	update_quota_waiters(conn->poll_group, part);
	weft_poll_group_start_reclaim(conn->qp.group);
}

void tcp_chunk_cancel_wait(struct tcp_conn *conn)
{
	if (conn->rx_state != TCP_RX_WAITS_CHUNK)
		return;
	weft_list_remove(&conn->chunk_wait);
	if (conn->qp.rx_part)
		update_quota_waiters(conn->poll_group, conn->qp.rx_part);
}

static void end_wait(struct tcp_conn *conn)
{
	tcp_chunk_cancel_wait(conn);
	tcp_rx_resume_soon(conn);
}

bool tcp_has_chunk_waiters(const struct weft_poll_group *group)
{
	return !weft_list_empty(&tcp_poll_group_of(group)->quota_waiters);
}

void tcp_serve_chunk_waiters(struct weft_poll_group *group)
{
	struct tcp_poll_group *poll_group = tcp_poll_group_of(group);
	struct weft_list *link;

	while (poll_group->spare_chunks < TCP_SPARE_CHUNKS &&
	       (link = weft_list_pop(&poll_group->quota_waiters))) {
		struct weft_rx_part *part = container_of(link, struct weft_rx_part, link);
		struct tcp_conn *conn = container_of(part->waiting.next, struct tcp_conn,
						     chunk_wait);

		switch_to_spare_chunk(conn);
		end_wait(conn);
	}
}

/* --- putting back ----------------------------------------------------------------------------- */

/* Half of a fused pair waits for the next command, which needs room. */
static bool is_pinned_by_fused_first(const struct tcp_conn *conn)
{
	struct weft_req *half = conn->qp.fused_waiting;

	return conn->chunk->refs == 2 && half && tcp_req_of(half)->chunk == conn->chunk;
}

/* The data of that half lies before the bytes that are not parsed, and nobody uses it yet. */
bool tcp_chunk_compact(struct tcp_conn *conn)
{
	struct tcp_stream *stream = &conn->stream;
	uint32_t kept = 0, left = stream->tail - stream->head;

	if (is_pinned_by_fused_first(conn)) {
		struct weft_req *half = conn->qp.fused_waiting;

		kept = tcp_sgl_len(half);
		memmove(stream->buf, half->data, kept);
		half->data = stream->buf;
	} else if (conn->chunk->refs > 1) {
		return false;
	}
	memmove(stream->buf + kept, stream->buf + stream->head, left);
	stream->head = kept;
	stream->tail = kept + left;
	return true;
}

static void free_chunk(struct tcp_conn *conn, struct tcp_chunk *chunk)
{
	struct weft_poll_group *group = conn->qp.group;

	weft_pool_give(&conn->poll_group->chunks, chunk);
	if (!--conn->nchunks) /* its own */
		return;
	conn->poll_group->spare_chunks--;
	conn->qp.rx_part->pinned--;
	update_quota_waiters(conn->poll_group, conn->qp.rx_part);
	if (!weft_list_empty(&conn->poll_group->quota_waiters))
		weft_reactor_defer(group->reactor, &group->serve_waiters);
}

/* The commands that pinned a connection's chunk have ended, or the only one left is half of a fused
 * pair: the connection needs no spare chunk. */
void tcp_chunk_recheck(struct tcp_conn *conn)
{
	if (conn->rx_state == TCP_RX_WAITS_CHUNK &&
	    (conn->chunk->refs == 1 || is_pinned_by_fused_first(conn)))
		end_wait(conn);
}

void tcp_chunk_put(struct tcp_conn *conn, struct tcp_chunk **chunk)
{
	struct tcp_chunk *old = *chunk;

	*chunk = NULL;
	if (!old)
		return;
	if (!--old->refs)
		free_chunk(conn, old);
	else if (old == conn->chunk)
		tcp_chunk_recheck(conn);
}
