/* socket_wrap.c - the sockets under a link: pairs, whose other end is the harness's. */
#include "socket_wrap.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "must.h"

enum { IOVS = 256, SEND_BUFFER = 16 << 10, FDS = 64 };

/* How each descriptor is watched. */
static struct {
	int epoll;
	struct epoll_event event;
} watched[FDS];

int __real_socket(int domain, int type, int protocol);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

static int other = -1;
static uint32_t send_max, recv_max;
static unsigned limited;

int socket_wrap_peer(void)
{
	int fd = other;

	other = -1;
	return fd;
}

void socket_wrap_limit(uint32_t send, uint32_t recv, unsigned calls)
{
	send_max = send;
	recv_max = recv;
	limited = calls;
}

int __wrap_socket(int domain, int type, int protocol)
{
	const int size = SEND_BUFFER;
	int fds[2];

	must(domain == AF_INET);
	if (other >= 0)
		close(other); /* a connection that ended before anybody took it */
	must(!socketpair(AF_UNIX, type, 0, fds));
	must(!__real_setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	other = fds[1];
	return fds[0];
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return level == IPPROTO_TCP ? 0 : __real_setsockopt(fd, level, name, value, len);
}

/* @msg as far as @most bytes go; 0: all of it. */
static struct msghdr clipped(const struct msghdr *msg, uint32_t most, struct iovec *iov)
{
	struct msghdr clip = *msg;
	size_t left = most;

	if (!most || !limited)
		return clip;
	limited--;
	clip.msg_iov = iov;
	for (clip.msg_iovlen = 0; left && clip.msg_iovlen < msg->msg_iovlen; clip.msg_iovlen++) {
		struct iovec *part = &iov[clip.msg_iovlen];

		must(clip.msg_iovlen < IOVS);
		*part = msg->msg_iov[clip.msg_iovlen];
		if (part->iov_len > left)
			part->iov_len = left;
		left -= part->iov_len;
	}
	return clip;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec iov[IOVS];
	struct msghdr clip = clipped(msg, send_max, iov);

	return __real_sendmsg(fd, &clip, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct iovec iov[IOVS];
	struct msghdr clip = clipped(msg, recv_max, iov);
	ssize_t n = __real_recvmsg(fd, &clip, flags);

	/* A kernel that returns less than was asked for has no more; what we hold back must make
	 * the edge that new bytes would. */
	if (n > 0 && clip.msg_iov == iov && fd < FDS)
		__real_epoll_ctl(watched[fd].epoll, EPOLL_CTL_MOD, fd, &watched[fd].event);
	return n;
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fd < FDS) {
		watched[fd].epoll = epoll;
		watched[fd].event = *event;
	}
	return __real_epoll_ctl(epoll, op, fd, event);
}
