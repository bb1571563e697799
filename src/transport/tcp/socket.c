/* socket.c - listening sockets and the options that a connection needs. */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "proto/uri.h"
#include "transport/tcp/socket.h"

enum {
	BACKLOG = 4096, /* a thousand hosts may boot at once */
	/* A peer that vanished is noticed even if its host set no NVMe Keep Alive. */
	KEEPALIVE_IDLE_S = 30,
	KEEPALIVE_STEP_S = 10,
	KEEPALIVE_TRIES = 3,
	USER_TIMEOUT_MS = 30000,
};

static int set_int_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Accepted sockets inherit these. */
int tcp_set_connection_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int rc = set_int_option(fd, options[i].level, options[i].name, options[i].value);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int tcp_set_abortive(int fd)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0 ? -errno : 0;
}

int tcp_listen_socket(const struct sockaddr_storage *addr)
{
	_cleanup_(weft_closep) int fd = -1;
	int rc;

	fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	rc = set_int_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (rc == 0 && addr->ss_family == AF_INET6)
		rc = set_int_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (rc == 0)
		rc = tcp_set_connection_options(fd);
	if (rc < 0)
		return rc;
	if (bind(fd, (const struct sockaddr *)addr, weft_addr_len(addr)) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}
