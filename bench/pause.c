/* pause.c - an application that notes how long it waits.
 *
 *   pause URI[,URI…]          one queue, --depth I/Os of 4 KiB in flight, half of them writes
 *
 *   a line on stdin ─▶ a line of JSON on stdout: what it saw since the line before
 *
 * Every I/O slot has blocks of its own, and one I/O at a time: what a read has to find is known
 * exactly. A block's bytes are made from its number and how often it was written, so a write that
 * was lost, came late or was torn shows.
 *
 * Times are CLOCK_MONOTONIC's, in nanoseconds. "known" is when the library knew that I/O had
 * nowhere to go (weft_queue_stalls), "over" when the last of what that concerned was completed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/host.h>

enum { BLOCK = 4096, WORDS = BLOCK / 8, DEPTH_MAX = 128, POLL_MS = 2, LOOK_NS = 1000000 };

struct app;

/* Its blocks are those with its number modulo the depth. */
struct app_io {
	struct weft_cmd cmd;
	struct iovec iov;
	struct app *app;
	unsigned number;
	uint64_t block, since_ns;
	uint64_t *data;
};

/* What was seen since the last line. */
struct window {
	uint64_t ios, sum_ns, longest_ns, gap_ns;
	uint64_t known_ns, over_ns, stalls, switches; /* known_ns 0: there was no stall */
};

struct app {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
	unsigned depth;
	uint64_t blocks, random, last_ns, looked_ns;
	uint32_t *written; /* per block: so many times */
	struct app_io ios[DEPTH_MAX];
	struct window window;
	struct weft_stalls stalls; /* as of the last poll */
	bool stopping;
	struct weft_err err;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static void stop_with_error(struct app *app, const struct weft_err *why)
{
	if (!app->err.text[0])
		app->err = *why;
	app->stopping = true;
}

/* --- what is in a block ----------------------------------------------------------------------- */

/* The first word of what was written there last; those behind it count on. Never written: zeros. */
static uint64_t first_word(const struct app *app, uint64_t block)
{
	return app->written[block] ? mix64(block << 32 | app->written[block]) : 0;
}

static void fill_block(struct app_io *io)
{
	uint64_t first;

	io->app->written[io->block]++;
	first = first_word(io->app, io->block);
	for (unsigned i = 0; i < WORDS; i++)
		io->data[i] = first + i;
}

/* Without a way out: so the compiler makes it many words at a time, and looking at all of a block
 * costs a small part of what reading it does. */
static bool block_is_right(const struct app_io *io)
{
	uint64_t first = first_word(io->app, io->block), step = first ? 1 : 0, wrong = 0;

	for (unsigned i = 0; i < WORDS; i++)
		wrong |= io->data[i] ^ (first + i * step);
	return !wrong;
}

static void verify_block(struct app_io *io)
{
	struct weft_err why;

	if (block_is_right(io))
		return;
	snprintf(why.text, sizeof(why.text), "block %" PRIu64 " is not what was written there last",
		 io->block);
	stop_with_error(io->app, &why);
}

/* --- I/O -------------------------------------------------------------------------------------- */

static void submit_next(struct app_io *io)
{
	struct app *app = io->app;
	struct weft_err why = { "" };
	uint64_t random;

	if (app->stopping)
		return;
	random = mix64(app->random++);
	io->block = (random >> 1) % (app->blocks / app->depth) * app->depth + io->number;
	io->cmd.op = random & 1 ? WEFT_WRITE : WEFT_READ;
	io->cmd.offset = io->block * BLOCK;
	if (io->cmd.op == WEFT_WRITE)
		fill_block(io);
	io->since_ns = now_ns();
	io->cmd.rc = weft_submit(app->queue, &io->cmd);
	if (io->cmd.rc < 0) {
		weft_cmd_text(&io->cmd, &why);
		stop_with_error(app, &why);
	}
}

static void record_latency(struct app *app, uint64_t took_ns, uint64_t now)
{
	struct window *w = &app->window;

	w->ios++;
	w->sum_ns += took_ns;
	w->longest_ns = took_ns > w->longest_ns ? took_ns : w->longest_ns;
	w->gap_ns = now - app->last_ns > w->gap_ns ? now - app->last_ns : w->gap_ns;
	app->last_ns = now;
}

static void on_io_done(struct weft_cmd *cmd)
{
	struct app_io *io = cmd->user;
	struct weft_err why = { "" };
	uint64_t now = now_ns();

	record_latency(io->app, now - io->since_ns, now);
	if (cmd->rc < 0) {
		weft_cmd_text(cmd, &why);
		stop_with_error(io->app, &why);
	} else if (cmd->op == WEFT_READ) {
		verify_block(io);
	}
	submit_next(io);
}

static void record_stalls(struct app *app)
{
	struct weft_stalls before = app->stalls;
	struct window *w = &app->window;
	uint64_t now;

	weft_queue_stalls(app->queue, &app->stalls);
	w->switches += app->stalls.switches - before.switches;
	if (app->stalls.stalls == before.stalls)
		return;
	now = now_ns();
	if (!w->stalls)
		w->known_ns = now - (app->stalls.total_ns - before.total_ns);
	w->stalls += app->stalls.stalls - before.stalls;
	w->over_ns = now;
}

/* --- telling ---------------------------------------------------------------------------------- */

static unsigned count_live(struct app *app)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	unsigned n = weft_ctrl_paths(app->ctrl, paths, WEFT_PATHS_MAX), live = 0;

	for (unsigned i = 0; i < n; i++)
		live += paths[i].state == WEFT_LIVE;
	return live;
}

static void print_window(struct app *app)
{
	const struct window *w = &app->window;

	printf("{\"ios\": %" PRIu64 ", \"sum_ns\": %" PRIu64 ", \"longest_ns\": %" PRIu64
	       ", \"gap_ns\": %" PRIu64 ", \"stalls\": %" PRIu64 ", \"known_ns\": %" PRIu64
	       ", \"over_ns\": %" PRIu64 ", \"switches\": %" PRIu64 ", \"live\": %u}\n",
	       w->ios, w->sum_ns, w->longest_ns, w->gap_ns, w->stalls, w->known_ns, w->over_ns,
	       w->switches, count_live(app));
	fflush(stdout);
	app->window = (struct window){ 0 };
}

/* Looking for a line costs a system call: now and then is enough. */
static void poll_stdin(struct app *app)
{
	uint64_t now = now_ns();
	char c;
	ssize_t n;

	if (now - app->looked_ns < LOOK_NS)
		return;
	app->looked_ns = now;
	while ((n = read(STDIN_FILENO, &c, 1)) == 1)
		if (c == '\n')
			print_window(app);
	if (n == 0)
		app->stopping = true;
}

/* --- from beginning to end -------------------------------------------------------------------- */

static int open_all(struct app *app, const char *uri)
{
	struct weft_ns_info info;
	int rc = weft_connect(uri, NULL, &app->ctrl, &app->err);

	if (!rc)
		rc = weft_ns_open(app->ctrl, 1, &app->ns, &app->err);
	if (!rc)
		rc = weft_queue_open(app->ctrl, &app->queue, &app->err);
	if (rc < 0)
		return rc;
	weft_ns_info(app->ns, &info);
	app->blocks = info.size / BLOCK;
	app->written = calloc(app->blocks, sizeof(*app->written));
	return app->written ? 0 : -ENOMEM;
}

static int init_ios(struct app *app)
{
	for (unsigned i = 0; i < app->depth; i++) {
		struct app_io *io = &app->ios[i];

		io->app = app;
		io->number = i;
		io->data = aligned_alloc(BLOCK, BLOCK);
		if (!io->data)
			return -ENOMEM;
		io->iov = (struct iovec){ io->data, BLOCK };
		io->cmd.ns = app->ns;
		io->cmd.length = BLOCK;
		io->cmd.iov = &io->iov;
		io->cmd.iovcnt = 1;
		io->cmd.done = on_io_done;
		io->cmd.user = io;
	}
	return 0;
}

static void run_load(struct app *app)
{
	app->last_ns = now_ns();
	for (unsigned i = 0; i < app->depth; i++)
		submit_next(&app->ios[i]);
	while (weft_queue_pending(app->queue)) {
		weft_queue_poll(app->queue, POLL_MS);
		record_stalls(app);
		poll_stdin(app);
	}
}

static void close_all(struct app *app)
{
	if (app->queue)
		weft_queue_close(app->queue);
	if (app->ns)
		weft_ns_close(app->ns);
	if (app->ctrl)
		weft_disconnect(app->ctrl);
	for (unsigned i = 0; i < app->depth; i++)
		free(app->ios[i].data);
	free(app->written);
}

static int usage(void)
{
	fprintf(stderr, "usage: pause [--depth N] URI[,URI…]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "depth", required_argument, NULL, 'd' }, { 0 } };
	static struct app app = { .depth = 32 };
	int c, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) == 'd')
		app.depth = (unsigned)strtoul(optarg, NULL, 10);
	if (c != -1 || optind + 1 != argc || !app.depth || app.depth > DEPTH_MAX)
		return usage();
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	rc = open_all(&app, argv[optind]);
	if (!rc)
		rc = init_ios(&app);
	if (!rc)
		run_load(&app);
	close_all(&app);
	if (rc < 0 || app.err.text[0])
		fprintf(stderr, "pause: %s\n", app.err.text[0] ? app.err.text : strerror(-rc));
	return rc < 0 || app.err.text[0];
}
