#include "daemon/channel.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	MAGIC = 0x74666577,  /* "weft" */
	DOC_MAX = 256 << 20, /* what a frame may make us allocate */
	BYTES_MAX = 1 << 30,
	FDS_MAX = 1 << 20,
	FDS_AT_ONCE = 250, /* the kernel takes 253 */
	SEND_MS = 5000,
};

struct header {
	uint32_t magic, doc, bytes, fds;
};

void weft_frame_free(struct weft_frame *frame)
{
	int *fds = frame->fds.at;

	for (unsigned i = 0; i < frame->fds.count; i++)
		weft_closep(&fds[i]);
	json_decref(frame->doc);
	free(frame->bytes.at);
	free(fds);
	*frame = (struct weft_frame){ 0 };
}

/* --- meeting ---------------------------------------------------------------------------------- */

/* An abstract name that the kernel chooses: there is no file to leave behind or to guard. */
int weft_channel_listen(char name[WEFT_CHANNEL_NAME_MAX])
{
	_cleanup_(weft_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
					       0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	size_t chars;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr.sun_family)) < 0 ||
	    listen(fd, 1) < 0 || getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return -errno;
	chars = len - offsetof(struct sockaddr_un, sun_path) - 1;
	if (chars >= WEFT_CHANNEL_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, addr.sun_path + 1, chars);
	name[chars] = '\0';
	return take_fd(&fd);
}

static int check_peer(int fd, pid_t *pid, struct weft_err *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return weft_fail(err, -errno, "takeover: %s", strerror(errno));
	if (peer.uid != geteuid() && peer.uid)
		return weft_fail(err, -EPERM, "takeover: the other side, pid %d, is of user %u",
				 (int)peer.pid, (unsigned)peer.uid);
	*pid = peer.pid;
	return 0;
}

static int set_limit(int fd, int which, unsigned ms)
{
	struct timeval limit = { ms / 1000, ms % 1000 * 1000 };

	return setsockopt(fd, SOL_SOCKET, which, &limit, sizeof(limit)) < 0 ? -errno : 0;
}

int weft_channel_accept(int listener, pid_t *pid, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int rc;

	if (fd < 0)
		return weft_fail(err, -errno, "takeover: %s", strerror(errno));
	rc = check_peer(fd, pid, err);
	if (!rc)
		rc = set_limit(fd, SO_SNDTIMEO, SEND_MS);
	return rc < 0 ? rc : take_fd(&fd);
}

int weft_channel_connect(const char *name, pid_t *pid, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t chars = strlen(name);
	int rc;

	if (chars + 1 > sizeof(addr.sun_path))
		return weft_fail(err, -ENAMETOOLONG, "takeover: the socket's name is too long");
	memcpy(addr.sun_path + 1, name, chars);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + chars)) < 0)
		return weft_fail(err, -errno, "takeover: the other side is gone: %s",
				 strerror(errno));
	rc = check_peer(fd, pid, err);
	if (!rc)
		rc = set_limit(fd, SO_SNDTIMEO, SEND_MS);
	return rc < 0 ? rc : take_fd(&fd);
}

/* --- sending ---------------------------------------------------------------------------------- */

static int send_all(int fd, const void *from, size_t len)
{
	ssize_t n;

	for (size_t sent = 0; sent<len; sent += n> 0 ? (size_t)n : 0) {
		n = send(fd, (const char *)from + sent, len - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
	}
	return 0;
}

union fds_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
};

static int send_some_fds(int fd, const int *fds, unsigned count)
{
	union fds_control control = { 0 };
	char byte = 0; /* descriptors do not travel alone */
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static unsigned batch(unsigned left)
{
	return left < FDS_AT_ONCE ? left : FDS_AT_ONCE;
}

static int send_fds(int fd, const struct weft_items *items)
{
	const int *fds = items->at;
	int rc = 0;

	for (unsigned i = 0; i < items->count && !rc; i += FDS_AT_ONCE)
		rc = send_some_fds(fd, &fds[i], batch(items->count - i));
	return rc;
}

int weft_channel_send(int fd, const struct weft_frame *frame)
{
	_cleanup_(weft_freep) char *text = json_dumps(frame->doc, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	struct header header = { MAGIC, (uint32_t)len, frame->bytes.count, frame->fds.count };
	int rc;

	if (!text || len > DOC_MAX)
		return -EINVAL;
	rc = send_all(fd, &header, sizeof(header));
	if (!rc)
		rc = send_all(fd, text, len);
	if (!rc)
		rc = send_all(fd, frame->bytes.at, frame->bytes.count);
	return rc < 0 ? rc : send_fds(fd, &frame->fds);
}

int weft_channel_send_step(int fd, const char *step)
{
	struct weft_frame frame = { .doc = json_pack("{s:s}", "step", step) };
	int rc = weft_channel_send(fd, &frame);

	weft_frame_free(&frame);
	return rc;
}

/* The other side may be gone: then there is nobody to tell. */
void weft_channel_send_failed(int fd, const char *why)
{
	struct weft_frame frame = { .doc = json_pack("{s:s, s:s}", "step", "failed", "why", why) };

	if (frame.doc)
		weft_channel_send(fd, &frame);
	weft_frame_free(&frame);
}

/* --- receiving -------------------------------------------------------------------------------- */

static int receive_failed(ssize_t n)
{
	if (!n)
		return -ECONNRESET;
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int recv_all(int fd, void *to, size_t len)
{
	ssize_t n;

	for (size_t got = 0; got<len; got += n> 0 ? (size_t)n : 0) {
		n = recv(fd, (char *)to + got, len - got, 0);
		if (!n || (n < 0 && errno != EINTR))
			return receive_failed(n);
	}
	return 0;
}

/* Takes what came of them, @most at most, also when it is not what was promised. */
static unsigned take_fds(struct msghdr *msg, int *fds, unsigned most)
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

static int recv_some_fds(int fd, struct weft_items *items, unsigned want)
{
	union fds_control control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(want * sizeof(int)),
	};
	unsigned got;
	ssize_t n;

	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return receive_failed(n);
	got = take_fds(&msg, (int *)items->at + items->count, want);
	items->count += got;
	/* Too few: this process may not have more open, or something is wrong with the sender. */
	return got == want ? 0 : -EMFILE;
}

static int recv_fds(int fd, struct weft_items *items, unsigned count)
{
	int rc = 0;

	items->at = calloc(count ? count : 1, sizeof(int));
	if (!items->at)
		return -ENOMEM;
	while (items->count < count && !rc)
		rc = recv_some_fds(fd, items, batch(count - items->count));
	return rc;
}

static int recv_bytes(int fd, struct weft_items *items, unsigned count)
{
	items->at = malloc(count ? count : 1);
	if (!items->at)
		return -ENOMEM;
	items->count = count;
	return recv_all(fd, items->at, count);
}

static int recv_doc(int fd, json_t **doc, size_t len)
{
	_cleanup_(weft_freep) char *text = malloc(len ? len : 1);
	int rc = text ? recv_all(fd, text, len) : -ENOMEM;

	if (rc < 0)
		return rc;
	*doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	return *doc ? 0 : -EPROTO;
}

static int recv_frame(int fd, struct weft_frame *frame)
{
	struct header header;
	int rc = recv_all(fd, &header, sizeof(header));

	if (rc < 0)
		return rc;
	if (header.magic != MAGIC || header.doc > DOC_MAX || header.bytes > BYTES_MAX ||
	    header.fds > FDS_MAX)
		return -EPROTO;
	rc = recv_doc(fd, &frame->doc, header.doc);
	if (!rc)
		rc = recv_bytes(fd, &frame->bytes, header.bytes);
	return rc < 0 ? rc : recv_fds(fd, &frame->fds, header.fds);
}

static int check_step(json_t *doc, const char *step, struct weft_err *err)
{
	const char *got = json_string_value(json_object_get(doc, "step"));
	const char *why = json_string_value(json_object_get(doc, "why"));

	if (got && !strcmp(got, step))
		return 0;
	if (got && !strcmp(got, "failed") && why)
		return weft_fail(err, -ECANCELED, "%s", why);
	return weft_fail(err, -EPROTO, "takeover: the other side said \"%s\", expected \"%s\"",
			 got ? got : "", step);
}

int weft_channel_recv(int fd, const char *step, unsigned limit_ms, struct weft_frame *frame,
		      struct weft_err *err)
{
	int rc = set_limit(fd, SO_RCVTIMEO, limit_ms);

	*frame = (struct weft_frame){ 0 };
	if (!rc)
		rc = recv_frame(fd, frame);
	if (rc < 0)
		weft_fail(err, rc, "takeover: waiting for \"%s\" of the other side: %s", step,
			  rc == -ECONNRESET ? "it went away" : strerror(-rc));
	else
		rc = check_step(frame->doc, step, err);
	if (rc < 0)
		weft_frame_free(frame);
	return rc;
}
