/* line.c - sending: what became ready during a turn of the reactor leaves in one system call.
 *
 *   push ─▶ waiting ─▶ (end of turn) ─▶ sending ─▶ send, which waits while the socket is full ─▶ sent()
 *
 *       others write to it:                sending ─▶ hold ─▶ offer ─▶ let go ─▶ sent()
 *                                             ▲                           │
 *                                             └──── wait until there is room: the socket is full
 *
 * Data that others write to is held while the kernel copies it, and not while the peer takes its
 * time: a host that reads slowly keeps nobody from writing. Asking for room is one operation more
 * each time that the socket is full, and only what is gathered together with such data pays it.
 *
 * Invariant: one send at a time; everything on @sending has its bytes in line->iov, and so has the
 * first of @waiting when it says there is more of it; nothing is held while the line is not busy or
 * waits for room. */
#include "transport/tcp/line.h"

#include <assert.h>
#include <errno.h>

const char tcp_zeroes[128];

static void send_done(struct weft_op *op, int res);

static void gather(struct tcp_line *line)
{
	struct tcp_tx *tx;

	line->at = line->count = 0;
	line->shared = false;
	while (line->count + TCP_TX_PARTS <= TCP_LINE_IOVS && !weft_list_empty(&line->waiting)) {
		tx = container_of(line->waiting.next, struct tcp_tx, link);
		tx->more = false;
		line->count += tx->fill(tx, line->iov + line->count, TCP_LINE_IOVS - line->count);
		if (tx->more)
			return;
		tx->end = (int16_t)line->count;
		line->shared |= tx->shared;
		weft_list_remove(&tx->link);
		weft_list_push(&line->sending, &tx->link);
	}
}

/* --- what others write to --------------------------------------------------------------------- */

/* The parts that can be sent now: up to the first one that cannot be held. */
static int hold(struct tcp_line *line)
{
	int end = line->at;
	struct tcp_tx *tx;

	if (!line->shared)
		return line->count;
	weft_list_for_each(tx, &line->sending, link) {
		if (tx->shared && !line->hold(tx))
			return end;
		end = tx->end;
	}
	return line->count;
}

static void let_go(struct tcp_line *line)
{
	struct tcp_tx *tx;

	if (!line->shared)
		return;
	weft_list_for_each(tx, &line->sending, link) {
		if (tx->end > line->offered)
			return;
		if (tx->shared)
			line->let_go(tx);
	}
}

const struct iovec *tcp_line_next(const struct tcp_line *line)
{
	return line->at < line->count ? &line->iov[line->at] : NULL;
}

void tcp_line_replace(struct tcp_line *line, void *at, size_t len)
{
	struct iovec *part = &line->iov[line->at];

	assert(line->at > 0 && len <= part->iov_len);
	part->iov_base = (char *)part->iov_base + len;
	part->iov_len -= len;
	if (part->iov_len)
		part = &line->iov[--line->at];
	*part = (struct iovec){ at, len };
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_gathered(struct tcp_line *line)
{
	struct iovec *iov = line->iov + line->at;
	int count;

	line->offered = hold(line);
	count = line->offered - line->at;
	if (!count) {
		weft_retry_later(line->sock->reactor, &line->flush);
		return;
	}
	weft_retry_over(&line->flush);
	line->busy = true;
	line->op.done = send_done;
	if (line->shared)
		weft_sock_offer(line->sock, &line->op, iov, count);
	else
		weft_sock_send(line->sock, &line->op, iov, count);
}

static void flush(struct tcp_line *line)
{
	if (line->busy || line->stopping)
		return;
	if (line->at == line->count) {
		gather(line);
		line->begun_ns = weft_reactor_now_ns(line->sock->reactor);
	}
	if (line->count)
		send_gathered(line);
	else if (line->drained)
		line->drained(line);
}

static void flush_task(struct weft_task *task)
{
	flush(container_of(task, struct tcp_line, flush.task));
}

static void room_done(struct weft_op *op, int res)
{
	struct tcp_line *line = container_of(op, struct tcp_line, op);

	(void)res; /* the next send says what is wrong */
	line->busy = false;
	if (line->stopping)
		line->stilled(line);
	else
		flush(line);
}

static void wait_for_room(struct tcp_line *line)
{
	line->busy = true;
	line->op.done = room_done;
	weft_sock_room(line->sock, &line->op);
}

static void finish(struct weft_list *list)
{
	struct weft_list *link;

	while ((link = weft_list_pop(list))) {
		struct tcp_tx *tx = container_of(link, struct tcp_tx, link);

		tx->sent(tx);
	}
}

static void advance(struct tcp_line *line, size_t bytes)
{
	while (bytes && bytes >= line->iov[line->at].iov_len)
		bytes -= line->iov[line->at++].iov_len;
	if (bytes) {
		struct iovec *iov = &line->iov[line->at];

		iov->iov_base = (char *)iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
}

static void finish_sent(struct tcp_line *line)
{
	while (!weft_list_empty(&line->sending)) {
		struct tcp_tx *tx = container_of(line->sending.next, struct tcp_tx, link);

		if (tx->end > line->at)
			return;
		weft_list_remove(&tx->link);
		tx->sent(tx);
	}
}

static void send_done(struct weft_op *op, int res)
{
	struct tcp_line *line = container_of(op, struct tcp_line, op);

	line->busy = false;
	if (res > 0)
		advance(line, (size_t)res);
	let_go(line);
	if (line->stopping) {
		line->stilled(line);
		return;
	}
	if (res < 0 && res != -EAGAIN) {
		line->failed(line, res);
		return;
	}
	finish_sent(line);
	if (line->shared && line->at < line->offered && !line->stopping)
		wait_for_room(line);
	else
		flush(line);
}

void tcp_line_init(struct tcp_line *line, struct weft_sock *sock)
{
	line->sock = sock;
	weft_list_init(&line->waiting);
	weft_list_init(&line->sending);
	weft_retry_init(&line->flush, flush_task);
}

void tcp_line_push(struct tcp_line *line, struct tcp_tx *tx)
{
	assert(!line->stopping);
	weft_list_push(&line->waiting, &tx->link);
	tcp_line_flush_soon(line);
}

void tcp_line_flush_soon(struct tcp_line *line)
{
	weft_reactor_defer(line->sock->reactor, &line->flush.task);
}

bool tcp_line_idle(const struct tcp_line *line)
{
	return !line->busy && weft_list_empty(&line->waiting) && weft_list_empty(&line->sending);
}

void tcp_line_drop(struct tcp_line *line)
{
	struct weft_list *first = line->waiting.next;
	struct tcp_tx *tx = container_of(first, struct tcp_tx, link);

	if (first != &line->waiting && tx->more) { /* half of it is out */
		weft_list_remove(first);
		finish(&line->waiting);
		weft_list_push(&line->waiting, first);
		return;
	}
	finish(&line->waiting);
}

void tcp_line_stop(struct tcp_line *line)
{
	line->stopping = true;
	weft_retry_cancel(&line->flush);
}

void tcp_line_clear(struct tcp_line *line)
{
	assert(line->stopping && !line->busy);
	finish(&line->sending);
	finish(&line->waiting);
}

void tcp_seal_header(const struct nvme_tcp_rules *rules, struct nvme_tcp_hdr *hdr, uint32_t *hdgst)
{
	if (!rules->hdgst)
		return;
	hdr->flags |= NVME_TCP_F_HDGST;
	*hdgst = htole32(nvme_tcp_crc(0, hdr, hdr->hlen));
}

uint32_t tcp_data_offset(uint32_t header, uint8_t pda)
{
	uint32_t align = (pda + 1u) * 4;

	return (header + align - 1) / align * align;
}
