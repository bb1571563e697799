/* bare.c - the limit: what a TCP server can do that does nothing but move the bytes.
 *
 *   recv ─▶ count ─▶ a reply for every whole request ─▶ one send
 *
 * A client's first 8 bytes say how long its requests and the replies to them are (bare_client.c).
 * One thread, no look at any byte after that. It never sleeps while a client is there: one alone is
 * asked again and again whether something came, several through epoll. Without any it waits.
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

enum {
	BUFFER_BYTES = 256 << 10, /* stays in a core's cache */
	EVENTS = 64,
	LOOK_AROUND = 4096, /* turns with one client, until a look who else is there */
};

struct client {
	int fd;
	uint32_t request, reply; /* bytes of each; 0 until the client said so */
	uint64_t arrived;        /* of the request that is under way */
	uint64_t owed;           /* bytes of replies not yet sent */
};

static uint8_t in[BUFFER_BYTES], out[BUFFER_BYTES];
static int epoll_fd;
static unsigned clients;
static struct client *latest;

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
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

/* False: it is gone, or talks nonsense. */
static bool client_hello(struct client *c)
{
	uint32_t hello[2] = {};
	ssize_t n = recv(c->fd, hello, sizeof(hello), 0);

	c->request = hello[0];
	c->reply = hello[1];
	return n < 0 ? errno == EAGAIN : n == sizeof(hello) && c->request;
}

static bool client_receive(struct client *c)
{
	ssize_t n = sizeof(in);

	if (!c->request && !client_hello(c))
		return false;
	/* Less than there is room for: that was all, and epoll tells of what comes next. */
	while (c->request && n == sizeof(in)) {
		n = recv(c->fd, in, sizeof(in), 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c->arrived += (uint64_t)n;
		c->owed += c->arrived / c->request * c->reply;
		c->arrived %= c->request;
	}
	return true;
}

static void client_serve(struct client *c)
{
	if (client_receive(c) && client_send(c))
		return;
	close(c->fd);
	free(c);
	clients--;
	latest = NULL;
}

static void accept_client(int listener)
{
	struct client *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };
	int one = 1;

	if (!c)
		die("calloc");
	c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->fd < 0)
		die("accept");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
		die("epoll_ctl");
	clients++;
	latest = c;
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
	if (fd < 0 || bind(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(fd, 1024) < 0)
		die("listen");
	return fd;
}

static void poll_clients(int listener)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(epoll_fd, events, EVENTS, clients ? 0 : -1);

	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			client_serve(events[i].data.ptr);
		else
			accept_client(listener);
	}
}

int main(int argc, char **argv)
{
	struct epoll_event ev = { .events = EPOLLIN };
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
		for (int i = 0; clients == 1 && latest && i < LOOK_AROUND; i++)
			client_serve(latest);
		poll_clients(listener);
	}
}
