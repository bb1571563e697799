/* channel_io.c - send or receive all bytes and descriptors before a deadline.
 *
 * The deadline is for the whole message, so a peer that sends one byte at a time does not extend
 * it. The socket never blocks: poll() waits for it. */
#include "daemon/takeover/channel_io.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

enum { FDS_AT_ONCE = 250 /* the kernel takes 253 */ };

uint64_t channel_deadline(unsigned ms)
{
	return weft_monotonic_ns() + ms * 1000000ull;
}

/* The kernel decides whether a message came in time, not two clocks: after this the other side can
 * send nothing, and all that it has sent can be read. */
static int shut_receive(int fd)
{
	return shutdown(fd, SHUT_RD) < 0 ? -errno : 0;
}

static int wait_ready(bool send, int fd, uint64_t deadline_ns, bool *late)
{
	int rc = weft_poll_until(fd, send ? POLLOUT : POLLIN, deadline_ns);

	*late = rc == -ETIMEDOUT;
	return *late && !send ? shut_receive(fd) : rc;
}

/* sendmsg() or recvmsg(), after poll() where it would block. */
static ssize_t channel_transfer(bool send, int fd, struct msghdr *msg, uint64_t deadline_ns)
{
	bool late;
	ssize_t n;
	int rc;

	do {
		rc = wait_ready(send, fd, deadline_ns, &late);
		if (rc < 0)
			return rc;
		n = send ? sendmsg(fd, msg, MSG_NOSIGNAL | MSG_DONTWAIT) :
			   recvmsg(fd, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n > 0)
		return n;
	if (n < 0 && errno != EPIPE)
		return -errno;
	return late ? -ETIMEDOUT : -ECONNRESET;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int channel_transfer_all(bool send, int fd, char *bytes, size_t len, uint64_t deadline_ns)
{
	size_t done = 0;

	while (done < len) {
		struct iovec iov = { bytes + done, len - done };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n = channel_transfer(send, fd, &msg, deadline_ns);

		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

int channel_send(int fd, const void *from, size_t len, uint64_t deadline_ns)
{
	return channel_transfer_all(true, fd, (char *)from, len, deadline_ns);
}

int channel_recv(int fd, void *to, size_t len, uint64_t deadline_ns)
{
	return channel_transfer_all(false, fd, to, len, deadline_ns);
}

/* --- descriptors ------------------------------------------------------------------------------ */

union fds_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
};

static unsigned fds_per_message(unsigned left)
{
	return left < FDS_AT_ONCE ? left : FDS_AT_ONCE;
}

/* One byte goes with the descriptors: they cannot be sent alone. */
static ssize_t transfer_fds(bool send, int fd, union fds_control *control, unsigned count,
			    struct msghdr *msg, uint64_t deadline_ns)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };

	msg->msg_iov = &iov;
	msg->msg_iovlen = 1;
	msg->msg_control = control->buf;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	return channel_transfer(send, fd, msg, deadline_ns);
}

static int send_some_fds(int fd, const int *fds, unsigned count, uint64_t deadline_ns)
{
	union fds_control control = { 0 };
	struct msghdr msg = { 0 };
	ssize_t n;

	assert(count && count <= FDS_AT_ONCE);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	n = transfer_fds(true, fd, &control, count, &msg, deadline_ns);
	return n < 0 ? (int)n : 0;
}

int channel_send_fds(int fd, const int *fds, unsigned count, uint64_t deadline_ns)
{
	int rc = 0;

	for (unsigned i = 0; i < count && !rc; i += FDS_AT_ONCE)
		rc = send_some_fds(fd, &fds[i], fds_per_message(count - i), deadline_ns);
	return rc;
}

/* Copies the descriptors that came, at most @most, also if the sender announced another number. */
static unsigned copy_fds(struct msghdr *msg, int *fds, unsigned most)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	unsigned count;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	if (count > most)
		count = most;
	memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
	return count;
}

static int recv_some_fds(int fd, struct weft_items *items, unsigned want, uint64_t deadline_ns)
{
	union fds_control control;
	struct msghdr msg = { 0 };
	ssize_t n = transfer_fds(false, fd, &control, want, &msg, deadline_ns);
	unsigned got;

	assert(want && want <= FDS_AT_ONCE);
	if (n < 0)
		return (int)n;
	got = copy_fds(&msg, (int *)items->at + items->count, want);
	items->count += got;
	/* Too few: this process has too many open, or the sender is wrong. */
	return got == want ? 0 : -EMFILE;
}

int channel_recv_fds(int fd, struct weft_items *items, unsigned count, uint64_t deadline_ns)
{
	int rc = 0;

	while (items->count < count && !rc)
		rc = recv_some_fds(fd, items, fds_per_message(count - items->count), deadline_ns);
	return rc;
}
