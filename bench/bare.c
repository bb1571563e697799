/* bare.c - the limit: what a TCP server can do that does nothing but move the bytes.
 *
 *   recv ─▶ count ─▶ a reply for every whole request ─▶ one send
 *
 * A client's first 8 bytes say how long its requests and the replies to them are (bare_client.c). One
 * thread, epoll, no look at any byte after that.
 *
 * usage: bare PORT          listens on 127.0.0.1, ends on SIGTERM */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct client {
	int fd;
	uint32_t request, reply; /* bytes of each; 0 until the client said so */
	uint64_t arrived;        /* of the request that is under way */
	uint64_t owed;           /* bytes of replies not yet sent */
	bool wants_out;
};

static uint8_t in[BUFFER_BYTES], out[BUFFER_BYTES];
static int epoll_fd;

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(struct client *c, int op, bool wants_out)
{
	struct epoll_event ev = { .events = EPOLLIN | (wants_out ? EPOLLOUT : 0), .data.ptr = c };

	if (epoll_ctl(epoll_fd, op, c->fd, &ev) < 0)
		die("epoll_ctl");
	c->wants_out = wants_out;
}

static bool client_send(struct client *c)
{
	while (c->owed) {
		size_t want = c->owed < BUFFER_BYTES ? c->owed : BUFFER_BYTES;
		ssize_t n = send(c->fd, out, want, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN;
		c->owed -= (uint64_t)n;
	}
	return true;
}

static bool client_hello(struct client *c)
{
	uint32_t hello[2];

	if (recv(c->fd, hello, sizeof(hello), 0) != sizeof(hello) || !hello[0])
		return false;
	c->request = hello[0];
	c->reply = hello[1];
	return true;
}

static bool client_receive(struct client *c)
{
	ssize_t n;

	if (!c->request)
		return client_hello(c);
	n = recv(c->fd, in, sizeof(in), 0);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	c->arrived += (uint64_t)n;
	c->owed += c->arrived / c->request * c->reply;
	c->arrived %= c->request;
	return true;
}

static void client_serve(struct client *c, uint32_t events)
{
	if ((events & ~(uint32_t)EPOLLOUT && !client_receive(c)) || !client_send(c)) {
		close(c->fd);
		free(c);
		return;
	}
	if (c->wants_out != (c->owed > 0))
		watch(c, EPOLL_CTL_MOD, c->owed > 0);
}

static void welcome(int listener)
{
	struct client *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c)
		die("calloc");
	c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->fd < 0)
		die("accept");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	watch(c, EPOLL_CTL_ADD, false);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(fd, 64) < 0)
		die("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event events[64], ev = { .events = EPOLLIN };
	int listener;

	if (argc != 2) {
		fputs("usage: bare PORT\n", stderr);
		return 2;
	}
	listener = listen_on((uint16_t)atoi(argv[1]));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &ev) < 0)
		die("epoll");
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 64, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				client_serve(events[i].data.ptr, events[i].events);
			else
				welcome(listener);
		}
	}
}
