/* socket.c - the control socket: accept clients, read a line, call a method, send its answer.
 *
 *            ┌──────────────────────────────────────────────────┐
 *            ▼                                                  │
 *   recv ─▶ line? ─▶ call ┄┄ the method works ┄┄▶ answer ─▶ send ┘      end of stream ─▶ close
 *
 * A client has one call at a time and is not read from while the call runs or its answer waits to
 * be sent, so a client can make us hold one line in and one answer out. Paused, the socket accepts
 * no call and no client. They wait in the kernel, for this process or its successor.
 *
 * Invariant: a client is freed only when it has no operation and no call under way. */
#include "daemon/control/socket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/control/line_buffer.h"

#define CLIENTS_MAX     64
#define ACCEPT_RETRY_MS 200

struct weft_control_socket {
	char *path;
	int fd; /* until it is served, then @sock has it */
	struct weft_reactor *reactor;
	const struct weft_rpc *rpc;
	struct weft_sock sock;
	struct weft_op accept;
	struct weft_timer retry;
	bool listening;        /* the accept operation or its timer is under way, or … */
	bool paused, deferred; /* … would be, were it not paused */
	struct weft_list clients;
	unsigned nclients;

	bool closing;
	void (*done)(void *arg);
	void *arg;
};

struct client {
	struct weft_list link;
	struct weft_control_socket *control;
	struct weft_sock sock;
	struct weft_op rx, tx;
	struct iovec rx_iov, tx_iov;
	struct weft_line_buffer in;
	struct weft_rpc_call call;
	struct weft_task next; /* continues after an answer */
	char *out;
	bool eof;      /* no more bytes will come, or should */
	bool calling;  /* a method has our call */
	bool deferred; /* there is something to do after the pause */
};

static void client_advance(struct client *client);

/* --- closing ---------------------------------------------------------------------------------- */

static void control_socket_maybe_free(struct weft_control_socket *c)
{
	void (*done)(void *arg) = c->done;
	void *arg = c->arg;

	if (!c->closing || c->listening || c->nclients)
		return;
	assert(weft_list_empty(&c->clients));
	free(c->path);
	free(c);
	done(arg);
}

static void client_free(struct client *client)
{
	struct weft_control_socket *c = client->control;

	assert_on(c->reactor);
	assert(!client->calling);
	weft_sock_close(&client->sock);
	weft_list_remove(&client->link);
	weft_line_buffer_free(&client->in);
	free(client->out);
	free(client);
	weft_count_down(c->nclients);
	control_socket_maybe_free(c);
}

/* --- one client ------------------------------------------------------------------------------- */

static void on_received(struct weft_op *op, int res)
{
	struct client *client = container_of(op, struct client, rx);

	assert(!client->calling && !client->out);
	if (res > 0)
		weft_line_buffer_filled(&client->in, (size_t)res);
	else
		client->eof = true;
	client_advance(client);
}

static void client_receive(struct client *client, char *at, size_t room)
{
	client->rx_iov = (struct iovec){ at, room };
	client->rx.done = on_received;
	weft_sock_recv(&client->sock, &client->rx, &client->rx_iov, 1);
}

static void on_sent(struct weft_op *op, int res)
{
	struct client *client = container_of(op, struct client, tx);

	if (res <= 0) {
		client_free(client);
		return;
	}
	client->tx_iov.iov_base = (char *)client->tx_iov.iov_base + res;
	client->tx_iov.iov_len -= (size_t)res;
	if (!client->tx_iov.iov_len) {
		free(client->out);
		client->out = NULL;
	}
	client_advance(client);
}

static void client_send(struct client *client)
{
	assert(client->tx_iov.iov_len);
	client->tx.done = on_sent;
	weft_sock_send(&client->sock, &client->tx, &client->tx_iov, 1);
}

static void client_set_answer(struct client *client, char *line)
{
	assert(!client->out && !client->calling);
	client->out = line;
	client->tx_iov = (struct iovec){ line, line ? strlen(line) : 0 };
}

static void on_client_task(struct weft_task *task)
{
	client_advance(container_of(task, struct client, next));
}

/* Runs inside client_call() if the method is quick, later if it is not. */
static void on_answer(struct weft_rpc_call *call, char *line)
{
	struct client *client = container_of(call, struct client, call);

	assert(client->calling);
	client->calling = false;
	client_set_answer(client, line);
	weft_reactor_defer(client->control->reactor, &client->next);
}

static void client_call(struct client *client, const char *line, size_t len)
{
	assert(!client->calling && !client->control->paused);
	client->calling = true;
	client->call.answer = on_answer;
	weft_rpc_handle(client->control->rpc, &client->call, line, len);
}

/* Sends the reason and reads no further: it is not known where the next line begins. */
static void client_refuse_line(struct client *client)
{
	client->eof = true;
	client_set_answer(client, weft_rpc_error_line(WEFT_RPC_PARSE_ERROR,
						      "a line has at most 1048576 bytes"));
	weft_reactor_defer(client->control->reactor, &client->next);
}

static void client_advance(struct client *client)
{
	const char *line;
	size_t len, room;
	char *at;

	assert_on(client->control->reactor);
	assert(!client->calling);
	if (client->control->closing)
		client_free(client);
	else if (client->out)
		client_send(client);
	else if (client->control->paused)
		client->deferred = true;
	else if (weft_line_buffer_take(&client->in, &line, &len))
		client_call(client, line, len);
	else if (client->eof)
		client_free(client);
	else if ((at = weft_line_buffer_room(&client->in, &room)))
		client_receive(client, at, room);
	else
		client_refuse_line(client);
}

static int client_create(struct weft_control_socket *c, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return -ENOMEM;
	rc = weft_sock_open(c->reactor, &client->sock, fd);
	if (rc < 0) {
		free(client);
		return rc;
	}
	client->control = c;
	weft_line_buffer_init(&client->in, WEFT_RPC_LINE_MAX);
	weft_task_init(&client->next, on_client_task);
	weft_list_push(&c->clients, &client->link);
	c->nclients++;
	client_advance(client);
	return 0;
}

/* --- the listener ----------------------------------------------------------------------------- */

static void refuse_client(int fd)
{
	_cleanup_(weft_freep) char *line =
		weft_rpc_error_line(WEFT_RPC_FAILED, "too many clients of the control socket");

	if (line)
		send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void accept_client(struct weft_control_socket *c, int fd)
{
	if (c->nclients >= CLIENTS_MAX || client_create(c, fd) < 0)
		refuse_client(fd);
}

static void poll_listener(struct weft_control_socket *c)
{
	weft_sock_poll(&c->sock, &c->accept);
}

static void on_accept_retry(struct weft_timer *timer)
{
	poll_listener(container_of(timer, struct weft_control_socket, retry));
}

static void stop_listening(struct weft_control_socket *c)
{
	assert(c->closing);
	c->listening = false;
	weft_sock_close(&c->sock);
	control_socket_maybe_free(c);
}

static void on_acceptable(struct weft_op *op, int res)
{
	struct weft_control_socket *c = container_of(op, struct weft_control_socket, accept);
	int fd;

	assert_on(c->reactor);
	assert(c->listening);
	if (c->closing) {
		stop_listening(c);
		return;
	}
	if (c->paused) {
		c->deferred = true;
		return;
	}
	while ((fd = accept4(c->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		accept_client(c, fd);
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
		poll_listener(c);
		return;
	}
	weft_warn("control socket: accept: %s", strerror(errno));
	weft_timer_set(c->reactor, &c->retry, ACCEPT_RETRY_MS);
}

int weft_control_socket_adopt(struct weft_control_socket **out, const char *path, int fd)
{
	struct weft_control_socket *c = calloc(1, sizeof(*c));

	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		close(fd);
		return -ENOMEM;
	}
	c->fd = fd;
	weft_list_init(&c->clients);
	*out = c;
	return 0;
}

int weft_control_socket_open(struct weft_control_socket **out, const char *path, bool make_dir,
			     struct weft_err *err)
{
	int fd = weft_unix_listen(path, make_dir, err);

	return fd < 0 ? fd : weft_control_socket_adopt(out, path, fd);
}

int weft_control_socket_serve(struct weft_control_socket *c, struct weft_reactor *r,
			      const struct weft_rpc *rpc, struct weft_err *err)
{
	int rc;

	assert(!c->reactor && c->fd >= 0);
	rc = weft_sock_open(r, &c->sock, c->fd);
	if (rc < 0)
		return weft_fail(err, rc, "control socket %s: %s", c->path, strerror(-rc));
	c->fd = -1;
	c->reactor = r;
	c->rpc = rpc;
	c->accept.done = on_acceptable;
	c->retry.fn = on_accept_retry;
	c->listening = true;
	poll_listener(c);
	return 0;
}

/* --- pause and resume ------------------------------------------------------------------------- */

void weft_control_socket_pause(struct weft_control_socket *c)
{
	assert(!c->paused && !c->closing);
	c->paused = true;
}

void weft_control_socket_resume(struct weft_control_socket *c)
{
	struct client *client, *next;

	assert(c->paused && !c->closing);
	c->paused = false;
	if (c->deferred)
		poll_listener(c);
	c->deferred = false;
	weft_list_for_each_safe(client, next, &c->clients, link) {
		if (!client->deferred)
			continue;
		client->deferred = false;
		client_advance(client);
	}
}

unsigned weft_control_socket_calls(const struct weft_control_socket *c)
{
	struct client *client;
	unsigned calls = 0;

	weft_list_for_each(client, &c->clients, link)
		calls += client->calling;
	return calls;
}

int weft_control_socket_fd(const struct weft_control_socket *c)
{
	return c->sock.fd;
}

/* --- close ------------------------------------------------------------------------------------ */

/* Ends the wait for clients; on_acceptable() runs, unless it was the timer that would call it. */
static void end_listening(struct weft_control_socket *c)
{
	if (weft_heap_has(&c->retry.node)) {
		weft_timer_stop(c->reactor, &c->retry);
		c->listening = false;
		weft_sock_close(&c->sock);
	} else {
		shutdown(c->sock.fd, SHUT_RDWR);
	}
}

void weft_control_socket_close(struct weft_control_socket *c, void (*done)(void *arg), void *arg)
{
	struct client *client;

	assert(!c->paused && !c->closing);
	c->closing = true;
	c->done = done;
	c->arg = arg;
	weft_unix_remove(c->path);
	if (c->fd >= 0)
		close(c->fd);
	if (c->listening)
		end_listening(c);
	weft_list_for_each(client, &c->clients, link)
		shutdown(client->sock.fd, SHUT_RDWR);
	control_socket_maybe_free(c);
}
