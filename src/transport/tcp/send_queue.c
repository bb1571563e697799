/* send_queue.c - the send queue: all that became ready during a turn of the reactor leaves in one
 * system call.
 *
 *   push ─▶ waiting ─▶ (end of turn) ─▶ sending ─▶ send, waits while the socket is full ─▶ sent()
 *
 *   shared data:  sending ─▶ hold_shared() ─▶ send without waiting ─▶ release_shared() ─▶ sent()
 *                    ▲                                                       │
 *                    └────── the socket was full: wait until it is writable ─┘
 *
 * Some data is a namespace's own memory, which other commands write to (@shared). It is held only
 * while the kernel copies it, not while the peer is slow: the send is made without waiting, and if
 * the socket is full, the data is released until the socket is writable. Items without such data
 * are sent with one operation that waits.
 *
 * Invariant: one send at a time; the parts of everything on @sending are in sendq->iov, and so are
 * those of the first item on @waiting if it has @more; nothing is held unless a send is under
 * way. */
#include "transport/tcp/send_queue.h"

#include <assert.h>
#include <errno.h>

const char tcp_zeroes[128];

static void send_done(struct weft_op *op, int res);

static void gather_parts(struct tcp_send_queue *sendq)
{
	struct tcp_tx *tx;

	sendq->at = sendq->count = 0;
	sendq->shared = false;
	while (sendq->count + TCP_TX_PARTS <= TCP_SEND_QUEUE_IOVS &&
	       !weft_list_empty(&sendq->waiting)) {
		tx = container_of(sendq->waiting.next, struct tcp_tx, link);
		tx->more = false;
		sendq->count += tx->fill(tx, sendq->iov + sendq->count,
					 TCP_SEND_QUEUE_IOVS - sendq->count);
		if (tx->more)
			return;
		tx->end = (int16_t)sendq->count;
		sendq->shared |= tx->shared;
		weft_list_remove(&tx->link);
		weft_list_push(&sendq->sending, &tx->link);
	}
}

/* --- shared data ------------------------------------------------------------------------------ */

/* Returns the end of the parts that can be sent now: up to the first that cannot be held. */
static int hold_shared(struct tcp_send_queue *sendq)
{
	int end = sendq->at;
	struct tcp_tx *tx;

	if (!sendq->shared)
		return sendq->count;
	weft_list_for_each(tx, &sendq->sending, link) {
		if (tx->shared && !sendq->hold_shared(tx))
			return end;
		end = tx->end;
	}
	return sendq->count;
}

static void release_shared(struct tcp_send_queue *sendq)
{
	struct tcp_tx *tx;

	if (!sendq->shared)
		return;
	weft_list_for_each(tx, &sendq->sending, link) {
		if (tx->end > sendq->offered)
			return;
		if (tx->shared)
			sendq->release_shared(tx);
	}
}

const struct iovec *tcp_send_queue_next_part(const struct tcp_send_queue *sendq)
{
	assert(sendq->at < sendq->count);
	return &sendq->iov[sendq->at];
}

void tcp_send_queue_replace_part(struct tcp_send_queue *sendq, void *at, size_t len)
{
	struct iovec *part = &sendq->iov[sendq->at];

	assert(sendq->at > 0 && len <= part->iov_len);
	part->iov_base = (char *)part->iov_base + len;
	part->iov_len -= len;
	if (part->iov_len)
		part = &sendq->iov[--sendq->at];
	*part = (struct iovec){ at, len };
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_gathered(struct tcp_send_queue *sendq)
{
	struct iovec *iov = sendq->iov + sendq->at;
	int count;

	sendq->offered = hold_shared(sendq);
	count = sendq->offered - sendq->at;
	if (!count) {
		weft_retry_later(sendq->sock->reactor, &sendq->flush);
		return;
	}
	weft_retry_reset(&sendq->flush);
	sendq->busy = true;
	sendq->op.done = send_done;
	if (sendq->shared)
		weft_sock_send_nowait(sendq->sock, &sendq->op, iov, count);
	else
		weft_sock_send(sendq->sock, &sendq->op, iov, count);
}

static void send_queue_flush(struct tcp_send_queue *sendq)
{
	if (sendq->busy || sendq->stopping)
		return;
	if (sendq->at == sendq->count) {
		gather_parts(sendq);
		sendq->send_start_ns = weft_reactor_now_ns(sendq->sock->reactor);
	}
	if (sendq->count)
		send_gathered(sendq);
	else if (sendq->all_sent)
		sendq->all_sent(sendq);
}

static void send_queue_flush_task(struct weft_task *task)
{
	send_queue_flush(container_of(task, struct tcp_send_queue, flush.task));
}

static void socket_writable(struct weft_op *op, int res)
{
	struct tcp_send_queue *sendq = container_of(op, struct tcp_send_queue, op);

	(void)res; /* the next send reports an error */
	sendq->busy = false;
	if (sendq->stopping)
		sendq->send_stopped(sendq);
	else
		send_queue_flush(sendq);
}

static void wait_writable(struct tcp_send_queue *sendq)
{
	sendq->busy = true;
	sendq->op.done = socket_writable;
	weft_sock_poll_out(sendq->sock, &sendq->op);
}

static void complete_items(struct weft_list *list)
{
	struct weft_list *link;

	while ((link = weft_list_pop(list))) {
		struct tcp_tx *tx = container_of(link, struct tcp_tx, link);

		tx->sent(tx);
	}
}

static void advance_parts(struct tcp_send_queue *sendq, size_t bytes)
{
	while (bytes && bytes >= sendq->iov[sendq->at].iov_len)
		bytes -= sendq->iov[sendq->at++].iov_len;
	if (bytes) {
		struct iovec *iov = &sendq->iov[sendq->at];

		iov->iov_base = (char *)iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
}

static void complete_sent_items(struct tcp_send_queue *sendq)
{
	while (!weft_list_empty(&sendq->sending)) {
		struct tcp_tx *tx = container_of(sendq->sending.next, struct tcp_tx, link);

		if (!tcp_send_queue_is_sent(sendq, tx))
			return;
		weft_list_remove(&tx->link);
		tx->sent(tx);
	}
}

static void send_done(struct weft_op *op, int res)
{
	struct tcp_send_queue *sendq = container_of(op, struct tcp_send_queue, op);

	sendq->busy = false;
	if (res > 0)
		advance_parts(sendq, (size_t)res);
	release_shared(sendq);
	if (sendq->stopping) {
		sendq->send_stopped(sendq);
		return;
	}
	if (res < 0 && res != -EAGAIN) {
		sendq->failed(sendq, res);
		return;
	}
	complete_sent_items(sendq);
	if (sendq->shared && sendq->at < sendq->offered && !sendq->stopping)
		wait_writable(sendq);
	else
		send_queue_flush(sendq);
}

void tcp_send_queue_init(struct tcp_send_queue *sendq, struct weft_sock *sock)
{
	sendq->sock = sock;
	weft_list_init(&sendq->waiting);
	weft_list_init(&sendq->sending);
	weft_retry_init(&sendq->flush, send_queue_flush_task);
}

void tcp_send_queue_push(struct tcp_send_queue *sendq, struct tcp_tx *tx)
{
	assert(!sendq->stopping);
	weft_list_push(&sendq->waiting, &tx->link);
	tcp_send_queue_flush_soon(sendq);
}

void tcp_send_queue_flush_soon(struct tcp_send_queue *sendq)
{
	weft_reactor_defer(sendq->sock->reactor, &sendq->flush.task);
}

bool tcp_send_queue_idle(const struct tcp_send_queue *sendq)
{
	return !sendq->busy && weft_list_empty(&sendq->waiting) && weft_list_empty(&sendq->sending);
}

void tcp_send_queue_drop_unsent(struct tcp_send_queue *sendq)
{
	struct weft_list *first = sendq->waiting.next;
	struct tcp_tx *tx = container_of(first, struct tcp_tx, link);

	if (first != &sendq->waiting && tx->more) { /* a part of it was sent */
		weft_list_remove(first);
		complete_items(&sendq->waiting);
		weft_list_push(&sendq->waiting, first);
		return;
	}
	complete_items(&sendq->waiting);
}

void tcp_send_queue_stop(struct tcp_send_queue *sendq)
{
	sendq->stopping = true;
	weft_retry_cancel(&sendq->flush);
}

void tcp_send_queue_clear(struct tcp_send_queue *sendq)
{
	assert(sendq->stopping && !sendq->busy);
	complete_items(&sendq->sending);
	complete_items(&sendq->waiting);
}

void tcp_set_header_digest(const struct nvme_tcp_rules *rules, struct nvme_tcp_hdr *hdr,
			   uint32_t *hdgst)
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
