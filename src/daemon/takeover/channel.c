/* channel.c - the private socket of a takeover.
 *
 * Invariant: after a timeout the receiver shuts its side down before it reads a last time. So a
 * frame without bytes and descriptors is either sent and received, or neither: "go" cannot be
 * lost. */
#include "daemon/takeover/channel.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/takeover/channel_io.h"

enum {
	MAGIC = 0x74666577,  /* "weft" */
	DOC_MAX = 256 << 20, /* the most that a frame makes us allocate */
	BYTES_MAX = 1 << 30,
	FDS_MAX = 1 << 20,
	SEND_MS = 5000,  /* for a frame */
	FAILED_MS = 100, /* … to a process that may have stopped reading */
};

struct frame_header {
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

/* --- connect ---------------------------------------------------------------------------------- */

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

static int channel_check_peer(int fd, pid_t *pid, struct weft_err *err)
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

int weft_channel_accept(int listener, pid_t *pid, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int rc;

	if (fd < 0)
		return weft_fail(err, -errno, "takeover: %s", strerror(errno));
	rc = channel_check_peer(fd, pid, err);
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
	rc = channel_check_peer(fd, pid, err);
	return rc < 0 ? rc : take_fd(&fd);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* The header and the document. */
static char *encode_head(const struct weft_frame *frame, size_t *size)
{
	_cleanup_(weft_freep) char *text = json_dumps(frame->doc, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	struct frame_header header = { MAGIC, (uint32_t)len, frame->bytes.count, frame->fds.count };
	char *head;

	if (!text || len > DOC_MAX)
		return NULL;
	*size = sizeof(header) + len;
	head = malloc(*size);
	if (head)
		memcpy(mempcpy(head, &header, sizeof(header)), text, len);
	return head;
}

static int send_frame(int fd, const struct weft_frame *frame, unsigned limit_ms)
{
	uint64_t deadline_ns = channel_deadline(limit_ms);
	size_t size;
	_cleanup_(weft_freep) char *head = encode_head(frame, &size);
	int rc;

	assert(fd >= 0);
	if (!head)
		return -EINVAL;
	rc = channel_send(fd, head, size, deadline_ns);
	if (!rc)
		rc = channel_send(fd, frame->bytes.at, frame->bytes.count, deadline_ns);
	return rc < 0 ? rc : channel_send_fds(fd, frame->fds.at, frame->fds.count, deadline_ns);
}

int weft_channel_send(int fd, const struct weft_frame *frame)
{
	return send_frame(fd, frame, SEND_MS);
}

int weft_channel_send_step(int fd, const char *step)
{
	struct weft_frame frame = { .doc = json_pack("{s:s}", "step", step) };
	int rc = weft_channel_send(fd, &frame);

	weft_frame_free(&frame);
	return rc;
}

/* Ignores errors: the other side may be gone. */
void weft_channel_send_failed(int fd, const char *why)
{
	struct weft_frame frame = { .doc = json_pack("{s:s, s:s}", "step", "failed", "why", why) };

	if (frame.doc)
		send_frame(fd, &frame, FAILED_MS);
	weft_frame_free(&frame);
}

/* --- receiving -------------------------------------------------------------------------------- */

static int recv_fds(int fd, struct weft_items *items, unsigned count, uint64_t deadline_ns)
{
	items->at = calloc(count ? count : 1, sizeof(int));
	return items->at ? channel_recv_fds(fd, items, count, deadline_ns) : -ENOMEM;
}

static int recv_bytes(int fd, struct weft_items *items, unsigned count, uint64_t deadline_ns)
{
	items->at = malloc(count ? count : 1);
	if (!items->at)
		return -ENOMEM;
	items->count = count;
	return channel_recv(fd, items->at, count, deadline_ns);
}

static int recv_doc(int fd, json_t **doc, size_t len, uint64_t deadline_ns)
{
	_cleanup_(weft_freep) char *text = malloc(len ? len : 1);
	int rc = text ? channel_recv(fd, text, len, deadline_ns) : -ENOMEM;

	if (rc < 0)
		return rc;
	*doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	return *doc ? 0 : -EPROTO;
}

static int recv_frame(int fd, struct weft_frame *frame, uint64_t deadline_ns)
{
	struct frame_header header;
	int rc = channel_recv(fd, &header, sizeof(header), deadline_ns);

	if (rc < 0)
		return rc;
	if (header.magic != MAGIC || header.doc > DOC_MAX || header.bytes > BYTES_MAX ||
	    header.fds > FDS_MAX)
		return -EPROTO;
	rc = recv_doc(fd, &frame->doc, header.doc, deadline_ns);
	if (!rc)
		rc = recv_bytes(fd, &frame->bytes, header.bytes, deadline_ns);
	return rc < 0 ? rc : recv_fds(fd, &frame->fds, header.fds, deadline_ns);
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
	int rc;

	assert(fd >= 0);
	*frame = (struct weft_frame){ 0 };
	rc = recv_frame(fd, frame, channel_deadline(limit_ms));
	if (rc < 0)
		weft_fail(err, rc, "takeover: waiting for \"%s\" of the other side: %s", step,
			  rc == -ECONNRESET ? "it went away" : strerror(-rc));
	else
		rc = check_step(frame->doc, step, err);
	if (rc < 0)
		weft_frame_free(frame);
	return rc;
}
