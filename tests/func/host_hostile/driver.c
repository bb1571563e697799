/* driver.c - a program that uses libweft, for host_hostile.py: a word for each fault.
 *
 *   driver WORD URI      tells what it sees, a line each; a line of stdin ends a wait
 *
 * It judges nothing and bounds no time: host_hostile.py does. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/host.h>

enum {
	BLOCK = 4096,
	STALE_WRITES = 120,
	STALE_BYTES = 8192, /* as much as a capsule holds */
	LOOP_READS = 300,   /* more than the queue is deep */
	LOOP_DONE = 400000,
	SCATTER_BYTES = 32,
	SCATTERED = 4096, /* pieces of memory: a receive fills few of them */
	STALL_MS = 10000,
	REOPENED = 4,
	WRITES = 16,
};

static struct weft_ctrl *ctrl;
static struct weft_ns *ns;
static struct weft_queue *queue;
static struct weft_err err;
static char memory[STALE_BYTES];
static const struct iovec iov = { memory, sizeof(memory) }, block = { memory, BLOCK };

static int check(int rc, const char *what)
{
	if (rc < 0) {
		printf("%s: %s\n", what, err.text);
		exit(1);
	}
	return rc;
}

static void open_queue(void)
{
	check(weft_queue_open(ctrl, &queue, &err), "weft_queue_open");
}

static void open_all(const char *uri)
{
	check(weft_connect(uri, NULL, &ctrl, &err), "weft_connect");
	check(weft_ns_open(ctrl, 1, &ns, &err), "weft_ns_open");
	open_queue();
}

static void close_all(void)
{
	weft_queue_close(queue);
	weft_ns_close(ns);
	weft_disconnect(ctrl);
}

/* Drives the queue, if there is one, until a line comes. */
static void await_word(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char c = 0;

	while (poll(&in, 1, queue ? 10 : -1) == 0)
		weft_queue_poll(queue, 0);
	while (c != '\n')
		if (read(STDIN_FILENO, &c, 1) != 1)
			exit(1);
}

static unsigned long reconnects(void)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(ctrl, &info);
	return (unsigned long)info.reconnects;
}

/* When it has an answer, everything that was asked before has been answered and dealt with. */
static void ask_something(void)
{
	static char page[4096];

	check(weft_identify(ctrl, 1, 0, page, &err), "weft_identify");
}

static void tell_outcome(struct weft_cmd *cmd)
{
	struct weft_err text;

	weft_cmd_text(cmd, &text);
	printf("%d %s\n", cmd->rc, text.text);
}

/* --- writes of before a reset ----------------------------------------------------------------- */

static unsigned left;

static void one_less(struct weft_cmd *cmd)
{
	if (cmd->rc)
		tell_outcome(cmd);
	left--;
}

static void submit_writes(struct weft_cmd *cmds, char byte)
{
	memset(memory, byte, sizeof(memory));
	for (left = 0; left < STALE_WRITES; left++) {
		cmds[left] = (struct weft_cmd){ .op = WEFT_WRITE,
						.ns = ns,
						.offset = left * STALE_BYTES,
						.length = STALE_BYTES,
						.iov = &iov,
						.iovcnt = 1,
						.done = one_less };
		check(weft_submit(queue, &cmds[left]), "weft_submit");
	}
}

static void stale(const char *uri)
{
	static struct weft_cmd cmds[STALE_WRITES];

	open_all(uri);
	submit_writes(cmds, 'O');
	await_word();
	weft_ctrl_reset(ctrl);
	while (left)
		weft_queue_poll(queue, -1);
	submit_writes(cmds, 'N');
	while (left)
		weft_queue_poll(queue, -1);
	puts("written");
	await_word();
	close_all();
}

/* --- a loop of the program's own -------------------------------------------------------------- */

static unsigned long done_so_far;

static void read_again(struct weft_cmd *cmd)
{
	check(cmd->rc, "read");
	if (++done_so_far < LOOP_DONE)
		check(weft_submit(queue, cmd), "weft_submit");
}

/* Only when the descriptor is readable there is something to do. */
static void drive_by_fd(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	while (weft_queue_pending(queue)) {
		if (poll(&pollfd, 1, STALL_MS) == 0) {
			printf("stalled, %u pending\n", weft_queue_pending(queue));
			exit(0);
		}
		weft_queue_poll(queue, 0);
	}
}

static void loop(const char *uri)
{
	static struct weft_cmd cmds[LOOP_READS];
	int fd;

	open_all(uri);
	fd = weft_queue_fd(queue);
	for (int i = 0; i < LOOP_READS; i++) {
		cmds[i] = (struct weft_cmd){
			.op = WEFT_READ, .ns = ns, .length = BLOCK, .iov = &block, .iovcnt = 1
		};
		cmds[i].done = read_again;
		check(weft_submit(queue, &cmds[i]), "weft_submit");
	}
	weft_queue_poll(queue, 0);
	drive_by_fd(fd);
	puts("all done");
	close_all();
}

/* Everything is there, and it takes many receives to take it in. */
static void scatter(const char *uri)
{
	static char room[SCATTERED * SCATTER_BYTES];
	static struct iovec pieces[SCATTERED];
	struct weft_cmd cmd = { .op = WEFT_READ, .length = sizeof(room), .iov = pieces };
	unsigned long sum = 0;

	for (int i = 0; i < SCATTERED; i++)
		pieces[i] = (struct iovec){ room + i * SCATTER_BYTES, SCATTER_BYTES };
	open_all(uri);
	cmd.ns = ns;
	cmd.iovcnt = SCATTERED;
	check(weft_submit(queue, &cmd), "weft_submit");
	weft_queue_fd(queue);
	weft_queue_poll(queue, 0);
	drive_by_fd(weft_queue_fd(queue));
	for (size_t i = 0; i < sizeof(room); i++)
		sum += (unsigned char)room[i];
	printf("%d %lu\n", cmd.rc, sum);
	close_all();
}

/* @early: the descriptor is asked for before there is anything to wait for. */
static void one_by_fd(const char *uri, int early)
{
	struct weft_cmd cmd = { .op = WEFT_READ, .length = BLOCK, .iov = &block, .iovcnt = 1 };

	open_all(uri);
	if (early)
		weft_queue_fd(queue);
	cmd.ns = ns;
	cmd.done = tell_outcome;
	check(weft_submit(queue, &cmd), "weft_submit");
	weft_queue_poll(queue, 0);
	drive_by_fd(weft_queue_fd(queue));
	close_all();
}

static void fd_first(const char *uri)
{
	one_by_fd(uri, 1);
}

static void fd_late(const char *uri)
{
	one_by_fd(uri, 0);
}

/* --- queues ----------------------------------------------------------------------------------- */

/* Closed while its Connect is not answered. */
static void close_early(const char *uri)
{
	open_all(uri);
	weft_ctrl_reset(ctrl);
	await_word();
	close_all();
	puts("closed");
}

static void reopen(const char *uri)
{
	open_all(uri);
	for (int i = 0; i < REOPENED; i++) {
		weft_queue_close(queue);
		open_queue();
	}
	printf("%d %lu\n", weft_read(queue, ns, memory, BLOCK, 0, &err), reconnects());
	close_all();
}

/* --- commands --------------------------------------------------------------------------------- */

static void read_after_reset(const char *uri)
{
	open_all(uri);
	weft_ctrl_reset(ctrl);
	await_word();
	ask_something();
	printf("%d\n", weft_read(queue, ns, memory, BLOCK, 0, &err));
	close_all();
}

/* Reads when a line comes, and says what the program is told besides. */
static void read_on_demand(struct weft_queue *queues[], struct weft_ns *spaces[])
{
	struct weft_event event;
	char line[8];
	int i;

	puts("ready");
	while (fgets(line, sizeof(line), stdin) && *line != 'q') {
		i = *line - '1';
		err.text[0] = '\0';
		printf("%d ", weft_read(queues[i], spaces[i], memory, BLOCK, 0, &err));
		puts(err.text);
		while (weft_ctrl_next_event(ctrl, &event))
			if (event.kind != WEFT_EVENT_STATE)
				printf("event: %s\n", event.text);
		puts(".");
	}
}

/* Of two namespaces, by one queue. */
static void read_both(const char *uri)
{
	struct weft_ns *second;

	open_all(uri);
	check(weft_ns_open(ctrl, 2, &second, &err), "weft_ns_open");
	read_on_demand((struct weft_queue *[]){ queue, queue }, (struct weft_ns *[]){ ns, second });
	weft_ns_close(second);
	close_all();
}

/* Of one namespace, by two queues. */
static void read_by_both(const char *uri)
{
	struct weft_queue *first;

	open_all(uri);
	first = queue;
	open_queue();
	read_on_demand((struct weft_queue *[]){ first, queue }, (struct weft_ns *[]){ ns, ns });
	weft_queue_close(first);
	close_all();
}

/* --- flushes ---------------------------------------------------------------------------------- */

/* Through two paths, in turn. */
static void write_some(struct weft_queue *through, struct weft_ns *to)
{
	for (int i = 0; i < WRITES; i++)
		check(weft_write(through, to, memory, BLOCK, 0, 0, &err), "weft_write");
}

/* Who flushes has another queue, and has opened the namespace anew. */
static void flush_for_another(const char *uri)
{
	struct weft_queue *other;
	struct weft_ns *again;

	open_all(uri);
	write_some(queue, ns);
	weft_ns_close(ns);
	check(weft_ns_open(ctrl, 1, &again, &err), "weft_ns_open");
	check(weft_queue_open(ctrl, &other, &err), "weft_queue_open");
	printf("%d\n", weft_flush(other, again, &err));
	weft_queue_close(other);
	ns = again;
	close_all();
}

/* The first queue writes; the second flushes, then the first. */
static void flush_by_second(const char *uri)
{
	struct weft_queue *second;

	open_all(uri);
	check(weft_queue_open(ctrl, &second, &err), "weft_queue_open");
	puts("ready");
	await_word();
	write_some(queue, ns);
	printf("%d\n", weft_flush(second, ns, &err));
	puts(err.text);
	printf("%d\n", weft_flush(queue, ns, &err));
	weft_queue_close(second);
	close_all();
}

static void flush_twice(const char *uri)
{
	open_all(uri);
	write_some(queue, ns);
	for (int i = 0; i < 2; i++)
		printf("%d\n", weft_flush(queue, ns, &err));
	close_all();
}

/* A path has gone, and what was written through it was not flushed. Twice: an error is not followed
 * by a lie; and also when another path has taken its place. */
static void flush_without_path(const char *uri)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	char first[256];

	open_all(uri);
	write_some(queue, ns);
	weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX);
	snprintf(first, sizeof(first), "%s/%s", paths[0].address, strrchr(uri, '/') + 1);
	check(weft_path_remove(ctrl, paths[0].path, &err), "weft_path_remove");
	await_word();
	printf("%d\n", weft_flush(queue, ns, &err));
	check(weft_path_add(ctrl, first, &err), "weft_path_add");
	printf("%d\n", weft_flush(queue, ns, &err));
	close_all();
}

/* Reservation Report (NUMD 1023) into memory that is larger than what there is to tell, and has
 * something in it. */
static void raw_short(const char *uri)
{
	unsigned char sqe[64] = { [0] = 0x0e, [4] = 1, [40] = 0xff, [41] = 3 };
	struct weft_cmd cmd = {
		.op = WEFT_RAW, .sqe = sqe, .length = BLOCK, .iov = &block, .iovcnt = 1
	};
	unsigned old = 0, beyond = 0;

	open_all(uri);
	memset(memory, 'o', sizeof(memory));
	printf("%d ", weft_run(queue, &cmd, &err));
	ask_something();
	for (unsigned i = 0; i < sizeof(memory); i++)
		*(i < BLOCK ? &old : &beyond) += memory[i] == 'o';
	printf("%lu, %u old bytes, %u beyond\n", reconnects(), old, beyond);
	close_all();
}

static void trim(const char *uri)
{
	open_all(uri);
	printf("%d\n", weft_trim(queue, ns, 512 << 10, 0, &err));
	close_all();
}

/* In several pieces, where the controller takes less at a time. */
static void copy(const char *uri)
{
	struct weft_cmd cmd = { .op = WEFT_COPY, .length = 16 * BLOCK, .copy_from = 32 * BLOCK };

	open_all(uri);
	cmd.ns = ns;
	weft_run(queue, &cmd, &err);
	tell_outcome(&cmd);
	close_all();
}

/* The write cache: whether it is on, or that it be on. */
static void feature(const char *uri, unsigned char opcode)
{
	unsigned char sqe[64] = { [0] = opcode, [40] = 6, [44] = 1 };
	int rc;

	check(weft_connect(uri, NULL, &ctrl, &err), "weft_connect");
	rc = weft_admin(ctrl, sqe, NULL, 0, NULL, &err);
	printf("%d %s\n", rc, rc < 0 ? err.text : "");
	weft_disconnect(ctrl);
}

static void get_feature(const char *uri)
{
	feature(uri, 0x0a);
}

static void set_feature(const char *uri)
{
	feature(uri, 0x09);
}

/* A write that waits for the connection. */
static void waiting_write(const char *uri)
{
	struct weft_cmd cmd = { .op = WEFT_WRITE, .length = BLOCK, .iov = &block, .iovcnt = 1 };

	open_all(uri);
	puts("ready");
	while (weft_ctrl_state(ctrl, NULL) == WEFT_LIVE)
		usleep(1000);
	cmd.ns = ns;
	cmd.done = tell_outcome;
	check(weft_submit(queue, &cmd), "weft_submit");
	puts("waits");
	while (weft_queue_pending(queue))
		weft_queue_poll(queue, -1);
	close_all();
}

/* --- the controller --------------------------------------------------------------------------- */

/* No queue: the controller's own thread does it all. */
static void idle(const char *uri)
{
	check(weft_connect(uri, NULL, &ctrl, &err), "weft_connect");
	await_word();
	ask_something();
	printf("%lu\n", reconnects());
	weft_disconnect(ctrl);
}

static void ask_until_reconnected(const char *uri)
{
	check(weft_connect(uri, NULL, &ctrl, &err), "weft_connect");
	while (!reconnects()) {
		ask_something();
		usleep(1000);
	}
	puts("reconnected");
	weft_disconnect(ctrl);
}

static const struct {
	const char *word;
	void (*run)(const char *uri);
} words[] = {
	{ "stale", stale },
	{ "loop", loop },
	{ "scatter", scatter },
	{ "fd-first", fd_first },
	{ "fd-late", fd_late },
	{ "close-early", close_early },
	{ "reopen", reopen },
	{ "read-after-reset", read_after_reset },
	{ "raw-short", raw_short },
	{ "read-both", read_both },
	{ "read-by-both", read_by_both },
	{ "flush-for-another", flush_for_another },
	{ "flush-by-second", flush_by_second },
	{ "flush-twice", flush_twice },
	{ "flush-without-path", flush_without_path },
	{ "trim", trim },
	{ "get-feature", get_feature },
	{ "set-feature", set_feature },
	{ "copy", copy },
	{ "waiting-write", waiting_write },
	{ "idle", idle },
	{ "ask-until-reconnected", ask_until_reconnected },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 3 && i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(argv[1], words[i].word)) {
			words[i].run(argv[2]);
			return 0;
		}
	fprintf(stderr, "driver: WORD URI\n");
	return 2;
}
