/* line.c - sending: what became ready during a turn of the reactor leaves in one system call.
 *
 *   push ─▶ waiting ─▶ (end of turn) ─▶ sending ─▶ sendmsg ─▶ sent()
 *
 * Invariant: one send at a time; everything on @sending has its bytes in line->iov, and so has the
 * first of @waiting when it says there is more of it. */
#include "transport/tcp/line.h"

#include <assert.h>

const char tcp_zeroes[128];

static void send_rest(struct tcp_line *line)
{
	line->busy = true;
	weft_sock_send(line->sock, &line->op, line->iov + line->at, line->count - line->at);
}

static void gather(struct tcp_line *line)
{
	struct tcp_tx *tx;

	line->at = line->count = 0;
	while (line->count + TCP_TX_PARTS <= TCP_LINE_IOVS && !weft_list_empty(&line->waiting)) {
		tx = container_of(line->waiting.next, struct tcp_tx, link);
		tx->more = false;
		line->count += tx->fill(tx, line->iov + line->count, TCP_LINE_IOVS - line->count);
		if (tx->more)
			return;
		weft_list_remove(&tx->link);
		weft_list_push(&line->sending, &tx->link);
	}
}

static void flush(struct tcp_line *line)
{
	if (line->busy || line->stopping)
		return;
	gather(line);
	line->begun_ns = weft_reactor_now_ns(line->sock->reactor);
	if (line->count)
		send_rest(line);
	else if (line->drained)
		line->drained(line);
}

static void flush_task(struct weft_task *task)
{
	flush(container_of(task, struct tcp_line, flush));
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

static void send_done(struct weft_op *op, int res)
{
	struct tcp_line *line = container_of(op, struct tcp_line, op);

	line->busy = false;
	if (line->stopping) {
		line->stilled(line);
		return;
	}
	if (res < 0) {
		line->failed(line, res);
		return;
	}
	advance(line, (size_t)res);
	if (line->at < line->count) {
		send_rest(line);
		return;
	}
	finish(&line->sending);
	flush(line);
}

void tcp_line_init(struct tcp_line *line, struct weft_sock *sock)
{
	line->sock = sock;
	weft_list_init(&line->waiting);
	weft_list_init(&line->sending);
	weft_task_init(&line->flush, flush_task);
	line->op.done = send_done;
}

void tcp_line_push(struct tcp_line *line, struct tcp_tx *tx)
{
	assert(!line->stopping);
	weft_list_push(&line->waiting, &tx->link);
	tcp_line_flush_soon(line);
}

void tcp_line_flush_soon(struct tcp_line *line)
{
	weft_reactor_defer(line->sock->reactor, &line->flush);
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
	weft_task_cancel(&line->flush);
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
