/* held.c - storage that keeps every operation until the test lets it go. */
#include "storage/held.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/list.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_list held_ios = { &held_ios, &held_ios }; /* weft_io.op.link */
static unsigned count;
static bool holding;
static char bytes[HELD_BYTES];
static const char *failing; /* kinds */
static int failing_rc;
static struct weft_backend *opened;
static char asked[64];

static const char letters[] = {
	[WEFT_IO_READ] = 'R', [WEFT_IO_WRITE] = 'W', [WEFT_IO_FLUSH] = 'F',
	[WEFT_IO_ZERO] = 'Z', [WEFT_IO_TRIM] = 'T',
};

static bool fails(const struct weft_io *io)
{
	return failing && strchr(failing, letters[io->kind]);
}

static void do_io(struct weft_io *io)
{
	char *at = bytes + io->offset;

	if (io->kind == WEFT_IO_READ)
		memcpy(io->buf, at, io->length);
	else if (io->kind == WEFT_IO_WRITE)
		memcpy(at, io->buf, io->length);
	else if (io->kind != WEFT_IO_FLUSH)
		memset(at, 0, io->length);
}

static void record_op(const struct weft_io *io)
{
	size_t len = strlen(asked);

	if (len < sizeof(asked) - 2)
		snprintf(asked + len, sizeof(asked) - len, "%c%s", letters[io->kind],
			 io->flags & WEFT_IO_FUA ? "!" : "");
}

/* On the reactor that asked. */
static void complete_io(struct weft_msg *msg)
{
	struct weft_io *io = container_of(msg, struct weft_io, op.mail);
	int rc;

	pthread_mutex_lock(&lock);
	rc = fails(io) ? failing_rc : 0;
	if (!rc)
		do_io(io);
	pthread_mutex_unlock(&lock);
	io->done(io, rc);
}

static void release_io(struct weft_io *io)
{
	io->op.mail.fn = complete_io;
	weft_reactor_post(io->op.reactor, &io->op.mail);
}

static int held_submit(struct weft_backend *be, struct weft_io *io)
{
	bool held;

	io->op.reactor = weft_reactor_self();
	pthread_mutex_lock(&lock);
	held = holding;
	record_op(io);
	if (held) {
		weft_list_push(&held_ios, &io->op.link);
		count++;
	}
	pthread_mutex_unlock(&lock);
	if (!held)
		release_io(io);
	return 0;
}

static void held_close(struct weft_backend *be)
{
	if (held_count())
		abort();
	free(be->spec);
	free(be);
}

/* Whoever had it is in this process. */
static bool held_node_active(struct weft_backend *be, unsigned node)
{
	return false;
}

static int held_lock_as(struct weft_backend *be, uint64_t as, uint64_t *other)
{
	return 0;
}

static uint64_t held_identity(struct weft_backend *be)
{
	return 0;
}

static const struct weft_backend_ops held_ops = {
	.type = "held",
	.submit = held_submit,
	.node_active = held_node_active,
	.lock_as = held_lock_as,
	.identity = held_identity,
	.close = held_close,
};

static const struct weft_backend_ops held_here_ops = {
	.type = "held",
	.locks_are_local = true,
	.submit = held_submit,
	.node_active = held_node_active,
	.lock_as = held_lock_as,
	.identity = held_identity,
	.close = held_close,
};

struct weft_backend *held_open(void)
{
	struct weft_backend *be = calloc(1, sizeof(*be));

	*be = (struct weft_backend){
		.ops = &held_ops,
		.size = HELD_BYTES,
		.align = 512,
		.block_min = 512,
		.spec = strdup("held:512K"),
	};
	memset(bytes, 0, sizeof(bytes));
	holding = false;
	failing = NULL;
	opened = be;
	return be;
}

struct weft_backend *held_open_here(void)
{
	struct weft_backend *be = held_open();

	be->ops = &held_here_ops;
	return be;
}

void held_drop(struct weft_backend *be)
{
	held_close(be);
}

void held_sync_failed(void)
{
	atomic_store(&opened->sync_failed, true);
}

void held_hold(bool hold)
{
	pthread_mutex_lock(&lock);
	holding = hold;
	pthread_mutex_unlock(&lock);
}

unsigned held_count(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = count;
	pthread_mutex_unlock(&lock);
	return n;
}

void held_let_go(void)
{
	struct weft_list all, *link;

	weft_list_init(&all);
	pthread_mutex_lock(&lock);
	weft_list_splice(&all, &held_ios);
	count = 0;
	pthread_mutex_unlock(&lock);
	while ((link = weft_list_pop(&all)))
		release_io(container_of(link, struct weft_io, op.link));
}

void held_fail(const char *kinds, int rc)
{
	pthread_mutex_lock(&lock);
	failing = kinds;
	failing_rc = rc;
	pthread_mutex_unlock(&lock);
}

const char *held_asked(void)
{
	static char told[sizeof(asked)];

	pthread_mutex_lock(&lock);
	strcpy(told, asked);
	asked[0] = '\0';
	pthread_mutex_unlock(&lock);
	return told;
}

const char *held_bytes(void)
{
	return bytes;
}
