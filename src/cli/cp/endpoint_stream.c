/* endpoint_stream.c - an endpoint: a pipe, a terminal, a character device. Bytes in order, of
 * unknown number.
 *
 * One worker drives it. Pieces are got and put in the order of their offsets; the others wait. A
 * pipe never blocks the worker, which may have commands under way. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/cp/internal.h"
#include "cli/hexdump.h"

struct cp_stream {
	struct cp_endpoint end;
	int fd;
	bool opened;  /* the descriptor is ours to close */
	bool blocked; /* wait until the descriptor is ready */
	bool ended;
	short ready;   /* POLLIN or POLLOUT */
	uint64_t next; /* the offset whose turn it is */
	struct weft_hexdump dump;
};

static struct cp_stream *stream_of(struct cp_endpoint *end)
{
	return (struct cp_stream *)end;
}

static int xfer_fail(struct cp_xfer *xfer, const struct cp_endpoint *end, int rc)
{
	return weft_fail(&xfer->err, rc, "%s: %s", end->name, strerror(-rc));
}

static bool is_ready(struct cp_stream *s, short events)
{
	struct pollfd pfd = { .fd = s->fd, .events = events };

	s->ready = events;
	s->blocked = poll(&pfd, 1, 0) == 0;
	return !s->blocked;
}

/* --- get -------------------------------------------------------------------------------------- */

static int partial_block(struct cp_endpoint *end, struct cp_xfer *xfer, uint64_t total)
{
	return weft_fail(&xfer->err, -EINVAL,
			 "%s ended after %s, inside a block of %" PRIu32
			 "; --pad fills it up with zeroes",
			 end->name, weft_exact_text(total).s, end->cp->to->block);
}

static int at_end(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	uint64_t total = xfer->offset + xfer->at;
	const struct cp *cp = end->cp;

	stream_of(end)->ended = true;
	if (cp->ask->length != WEFT_CLI_ALL)
		return weft_fail(&xfer->err, -ENODATA,
				 "%s ended after %" PRIu64 " of %" PRIu64 " bytes", end->name,
				 total, cp->ask->length);
	if (total % cp->to->block && !cp->ask->pad)
		return partial_block(end, xfer, total);
	xfer->length = xfer->at;
	weft_cp_set_total(end->cp, total);
	return CP_DONE;
}

static int stream_get(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	struct cp_stream *s = stream_of(end);
	ssize_t n;

	if (s->ended) {
		xfer->length = 0;
		return CP_DONE;
	}
	if (xfer->offset != s->next)
		return CP_LATER;
	while (xfer->at < xfer->length) {
		if (!is_ready(s, POLLIN))
			return CP_LATER;
		n = read(s->fd, xfer->buf + xfer->at, xfer->length - xfer->at);
		if (n == 0)
			return at_end(end, xfer);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return CP_LATER;
		if (n < 0)
			return xfer_fail(xfer, end, -errno);
		xfer->at += (uint64_t)n;
	}
	s->next += xfer->length;
	return CP_DONE;
}

int weft_cp_stream_ended(struct cp_endpoint *from, struct weft_err *err)
{
	struct cp_stream *s = stream_of(from);
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };
	char more;
	ssize_t n = 0;

	if (!from->is_stream || s->ended)
		return 0;
	do {
		if (weft_cp_signal())
			return -EINTR;
		if (poll(&pfd, 1, 200) > 0) {
			n = read(s->fd, &more, 1);
			break;
		}
	} while (true);
	if (n == 0)
		return 0;
	if (n < 0)
		return weft_fail(err, -errno, "%s: %s", from->name, strerror(errno));
	return weft_fail(err, -E2BIG, "%s is longer than the %s that fit into %s", from->name,
			 weft_exact_text(s->next).s, from->cp->to->name);
}

/* --- put -------------------------------------------------------------------------------------- */

/* After a partial write xfer->at advances, and the next try continues there. */
static int stream_put(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	struct cp_stream *s = stream_of(end);
	ssize_t n;

	if (xfer->offset + xfer->at != s->next)
		return CP_LATER;
	n = write(s->fd, xfer->buf + xfer->at, xfer->run);
	if (n < 0 && errno == EAGAIN) {
		s->blocked = true;
		s->ready = POLLOUT;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CP_LATER;
	if (n < 0)
		return xfer_fail(xfer, end, -errno);
	s->blocked = false;
	s->next += (uint64_t)n;
	xfer->run = (uint64_t)n;
	return CP_DONE;
}

static int hex_put(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	struct cp_stream *s = stream_of(end);
	int rc;

	if (xfer->offset + xfer->at != s->next)
		return CP_LATER;
	rc = weft_hexdump(&s->dump, xfer->buf + xfer->at, xfer->run);
	s->next += xfer->run;
	return rc < 0 ? xfer_fail(xfer, end, rc) : CP_DONE;
}

static int hex_finish(struct cp_endpoint *end, uint64_t total, struct weft_err *err)
{
	int rc = weft_hexdump_end(&stream_of(end)->dump);

	(void)total;
	return rc < 0 ? weft_fail(err, rc, "%s: %s", end->name, strerror(-rc)) : 0;
}

/* --- the rest --------------------------------------------------------------------------------- */

static int stream_fd(struct cp_endpoint *end, unsigned worker, short *events)
{
	struct cp_stream *s = stream_of(end);

	(void)worker;
	*events = s->ready;
	return s->blocked ? s->fd : -1;
}

static void stream_abandon(struct cp_endpoint *end, char *text, size_t size)
{
	uint64_t put = stream_of(end)->next;

	if (put)
		snprintf(text, size, "%s got the first %s", end->name, weft_exact_text(put).s);
	else
		snprintf(text, size, "%s got nothing", end->name);
}

/* Nobody knows how much of it is still in the buffer. */
static void hex_abandon(struct cp_endpoint *end, char *text, size_t size)
{
	snprintf(text, size, "the dump is incomplete");
}

static void stream_close(struct cp_endpoint *end)
{
	struct cp_stream *s = stream_of(end);

	if (s->opened)
		close(s->fd);
	free(s);
}

static const struct cp_endpoint_ops stream_ops = {
	.get = stream_get,
	.put = stream_put,
	.fd = stream_fd,
	.abandon = stream_abandon,
	.close = stream_close,
};

static const struct cp_endpoint_ops hex_ops = {
	.put = hex_put,
	.finish = hex_finish,
	.abandon = hex_abandon,
	.close = stream_close,
};

/* A pipe that is opened again can be made non-blocking without a change for others who share the
 * old descriptor. */
static void avoid_blocking(struct cp_stream *s)
{
	int flags = fcntl(s->fd, F_GETFL), fd;
	char path[32];

	if ((flags & O_ACCMODE) != O_WRONLY || fcntl(s->fd, F_GETPIPE_SZ) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (s->opened)
		close(s->fd);
	s->fd = fd;
	s->opened = true;
}

static struct cp_stream *stream_new(struct cp *cp, int fd, const char *name,
				    const struct cp_endpoint_ops *ops)
{
	struct cp_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->opened = fd > STDERR_FILENO;
	s->end = (struct cp_endpoint){
		.ops = ops,
		.cp = cp,
		.name = name,
		.size = CP_UNKNOWN,
		.block = 1,
		.is_stream = true,
		.workers_max = 1,
	};
	return s;
}

int weft_cp_stream(struct cp *cp, int fd, const char *name, struct cp_endpoint **end,
		   struct weft_err *err)
{
	struct cp_stream *s = stream_new(cp, fd, name, &stream_ops);

	if (!s)
		return weft_fail(err, -ENOMEM, "no memory");
	avoid_blocking(s);
	*end = &s->end;
	return 0;
}

int weft_cp_hex(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	struct cp_stream *s = stream_new(cp, STDOUT_FILENO, "standard output", &hex_ops);

	if (!s)
		return weft_fail(err, -ENOMEM, "no memory");
	s->dump = (struct weft_hexdump){ .out = stdout, .offset = cp->ask->from_offset };
	*end = &s->end;
	return 0;
}
