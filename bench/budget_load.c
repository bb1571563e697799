/* budget_load.c - the workloads of bench/budget: host and target in one thread, turn by turn.
 *
 *   step ─▶ the host submits some ─▶ the host polls ─▶ the target turns until it rests ─▶ step …
 *
 * How many commands meet in a turn is drawn from a seed, and nothing else runs: so every run does
 * the same, and what an end costs is counted by callgrind to the digit. Each row of the table runs
 * three times: once to warm up, once with the host counted, once with the target. System calls are
 * those that valgrind traces between two marks.
 *
 * usage: budget_load list
 *        budget_load count [ROW…]   under callgrind; a dump for each row and end
 *        budget_load trace [ROW…]   under valgrind --trace-syscalls=yes; marks whose they are
 *        budget_load memory ROW     two processes; prints what each end holds, in bytes
 *        budget_load pipe           what a socket pair takes before it is full: the kernel's say */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <valgrind/callgrind.h>
#include <weft/host.h>

#include "budget_target.h"
#include "budget_world.h"

enum { SLOTS_MAX = 1024, CTRL_QUEUES = 50, CTRLS_MAX = 20, STEP_NS = 10000 };
enum { SEED = 20261118 };
/* Large enough that no part of it fills up: memory that does is made large pages of, by a thread. */
#define NS_SIZE  "1G"
#define NS_BYTES (UINT64_C(1) << 30)

/* --- the workloads ---------------------------------------------------------------------------- */

/* A row more is a line more: what the namespace is on, what the host asks for. */
static const struct row {
	const char *name;
	const char *backend;
	const char *words; /* of the URI */
	uint32_t bytes;
	unsigned reads;       /* of a hundred commands */
	unsigned connections; /* I/O queues */
	unsigned depth;       /* of each */
	unsigned commands;    /* that are counted */
} rows[] = {
	{ "read-4k", "mem:" NS_SIZE, "", 4096, 100, 1, 32, 1000 },
	{ "write-4k", "mem:" NS_SIZE, "", 4096, 0, 1, 32, 1000 },
	{ "mix-4k", "mem:" NS_SIZE, "", 4096, 70, 1, 32, 1000 },
	{ "read-128k", "mem:" NS_SIZE, "", 131072, 100, 1, 8, 100 },
	{ "write-128k", "mem:" NS_SIZE, "", 131072, 0, 1, 8, 100 },
	{ "read-4k-digests", "mem:" NS_SIZE, "hdgst&ddgst", 4096, 100, 1, 32, 1000 },
	{ "write-4k-digests", "mem:" NS_SIZE, "hdgst&ddgst", 4096, 0, 1, 32, 1000 },
	{ "mix-4k-digests", "mem:" NS_SIZE, "hdgst&ddgst", 4096, 70, 1, 32, 1000 },
	{ "read-128k-digests", "mem:" NS_SIZE, "hdgst&ddgst", 131072, 100, 1, 8, 100 },
	{ "write-128k-digests", "mem:" NS_SIZE, "hdgst&ddgst", 131072, 0, 1, 8, 100 },
	{ "read-4k-1000-connections", "mem:" NS_SIZE, "", 4096, 100, 1000, 1, 1000 },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

enum end { NOBODY, HOST, TARGET };

/* --- what cannot be done ---------------------------------------------------------------------- */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "budget: %s: %s\n", what, why);
	exit(1);
}

static void must(int rc, const char *what, const struct weft_err *err)
{
	if (rc < 0)
		die(what, err ? err->text : strerror(-rc));
}

/* --- chance ----------------------------------------------------------------------------------- */

static uint64_t chance;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = chance += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

/* --- the host --------------------------------------------------------------------------------- */

struct slot {
	struct weft_cmd cmd;
	struct iovec iov;
	struct slot *next; /* that is free, of its queue */
};

static struct host {
	const struct row *row;
	struct weft_ctrl *ctrls[CTRLS_MAX];
	unsigned nctrls;
	struct weft_ns *ns[CTRLS_MAX];
	struct weft_queue *queues[SLOTS_MAX];
	struct slot *free[SLOTS_MAX]; /* by queue */
	unsigned nfree[SLOTS_MAX];
	struct slot slots[SLOTS_MAX];
	unsigned submitted, completed;
	char *data;
} host;

static struct weft_ctrl *connect_to(const char *address, const struct row *row)
{
	struct weft_err err = { "" };
	struct weft_options options;
	struct weft_ctrl *ctrl;
	char uri[256];

	weft_options_init(&options);
	options.hostnqn = "nqn.2026-11.io.weft:budget-host";
	options.hostid = "5f7e2c1a-0d7b-4c57-9d20-0e2f6d1c9a11";
	options.queues = CTRL_QUEUES;
	options.keepalive_ms = 0; /* what comes by the clock is nobody's command */
	snprintf(uri, sizeof(uri), "%s/%s?%s", address, BUDGET_NQN, row->words);
	must(weft_connect(uri, &options, &ctrl, &err), row->name, &err);
	return ctrl;
}

/* Its namespace has the row's number. */
static void host_open(const char *address, const struct row *row)
{
	struct weft_err err = { "" };

	for (unsigned i = 0; i < host.nctrls; i++) {
		host.ctrls[i] = connect_to(address, row);
		must(weft_ns_open(host.ctrls[i], (uint32_t)(row - rows) + 1, &host.ns[i], &err),
		     row->name, &err);
	}
	for (unsigned i = 0; i < row->connections; i++)
		must(weft_queue_open(host.ctrls[i % host.nctrls], &host.queues[i], &err), row->name,
		     &err);
}

static void host_close(void)
{
	for (unsigned i = 0; i < host.row->connections; i++)
		weft_queue_close(host.queues[i]);
	for (unsigned i = 0; i < host.nctrls; i++) {
		weft_ns_close(host.ns[i]);
		weft_disconnect(host.ctrls[i]);
	}
}

static unsigned queue_of(const struct slot *slot)
{
	return (unsigned)(slot - host.slots) / host.row->depth;
}

static void put_free(struct slot *slot)
{
	unsigned queue = queue_of(slot);

	slot->next = host.free[queue];
	host.free[queue] = slot;
	host.nfree[queue]++;
}

static struct slot *take_free(unsigned queue)
{
	struct slot *slot = host.free[queue];

	host.free[queue] = slot->next;
	host.nfree[queue]--;
	return slot;
}

static void done(struct weft_cmd *cmd)
{
	struct weft_err why;

	if (cmd->rc < 0) {
		weft_cmd_text(cmd, &why);
		die(host.row->name, why.text);
	}
	host.completed++;
	put_free(cmd->user);
}

static void host_prepare(const struct row *row)
{
	unsigned count = row->connections * row->depth;

	host.row = row;
	memset(host.free, 0, sizeof(host.free));
	memset(host.nfree, 0, sizeof(host.nfree));
	host.nctrls = (row->connections + CTRL_QUEUES - 1) / CTRL_QUEUES;
	budget_world_pairs(row->connections + host.nctrls);
	host.data = aligned_alloc(4096, (size_t)count * row->bytes);
	if (!host.data)
		die(row->name, strerror(ENOMEM));
	memset(host.data, 0x5a, (size_t)count * row->bytes);
	for (unsigned i = count; i-- > 0;) {
		struct slot *slot = &host.slots[i];

		*slot = (struct slot){ .iov = { host.data + (size_t)i * row->bytes, row->bytes } };
		put_free(slot);
	}
}

static void fill_in(struct slot *slot)
{
	const struct row *row = host.row;

	slot->cmd = (struct weft_cmd){
		.op = draw(100) < row->reads ? WEFT_READ : WEFT_WRITE,
		.ns = host.ns[queue_of(slot) % host.nctrls],
		.offset = draw(NS_BYTES / row->bytes) * row->bytes,
		.length = row->bytes,
		.iov = &slot->iov,
		.iovcnt = 1,
		.done = done,
		.user = slot,
	};
}

/* --- one step --------------------------------------------------------------------------------- */

static enum end counted;
static bool tracing;

/* From here to the next one it is this end that works. */
#define WORKS(end)                                                                          \
	do {                                                                                \
		if (tracing)                                                                \
			VALGRIND_PRINTF("budget: %s\n", (end) == HOST ? "host" : "target"); \
		else if (counted == (end))                                                  \
			CALLGRIND_TOGGLE_COLLECT;                                           \
	} while (0)
/* It has worked. */
#define RESTS(end)                                           \
	do {                                                 \
		if (tracing)                                 \
			VALGRIND_PRINTF("budget: nobody\n"); \
		else if (counted == (end))                   \
			CALLGRIND_TOGGLE_COLLECT;            \
	} while (0)

static void submit(unsigned queue)
{
	struct slot *slot = take_free(queue);
	int rc;

	fill_in(slot);
	host.submitted++;
	WORKS(HOST);
	rc = weft_submit(host.queues[queue], &slot->cmd);
	RESTS(HOST);
	must(rc, host.row->name, NULL);
}

static void submit_some(unsigned queue, unsigned limit)
{
	unsigned count = host.nfree[queue] ? 1 + (unsigned)draw(host.nfree[queue]) : 0;

	while (count-- && host.submitted < limit)
		submit(queue);
}

static void host_turn(unsigned limit)
{
	for (unsigned i = 0; i < host.row->connections; i++) {
		submit_some(i, limit);
		WORKS(HOST);
		weft_queue_poll(host.queues[i], 0);
		RESTS(HOST);
	}
}

static void target_turn(void)
{
	WORKS(TARGET);
	budget_target_turn();
	RESTS(TARGET);
}

static void run(const struct row *row, enum end end)
{
	chance = SEED;
	counted = end;
	host.submitted = host.completed = 0;
	while (host.completed < row->commands) {
		host_turn(row->commands);
		target_turn();
		budget_clock_step(STEP_NS);
	}
}

/* --- counting --------------------------------------------------------------------------------- */

static void dump(const struct row *row, const char *end)
{
	char text[128];

	snprintf(text, sizeof(text), "%s %s %u", row->name, end, row->commands);
	CALLGRIND_DUMP_STATS_AT(text);
}

static void count_row(const struct row *row)
{
	CALLGRIND_START_INSTRUMENTATION;
	run(row, NOBODY);
	CALLGRIND_ZERO_STATS;
	run(row, HOST);
	dump(row, "host");
	run(row, TARGET);
	dump(row, "target");
	CALLGRIND_STOP_INSTRUMENTATION;
}

static void trace_row(const struct row *row)
{
	run(row, NOBODY);
	VALGRIND_PRINTF("budget: row %s %u\n", row->name, row->commands);
	tracing = true;
	run(row, NOBODY);
	tracing = false;
}

/* Nobody else has anything to do meanwhile. */
static void with_row(const struct row *row, void (*measure)(const struct row *row))
{
	host_prepare(row);
	host_open(budget_target_address(), row);
	budget_clock_hold();
	measure(row);
	budget_clock_release();
	host_close();
	free(host.data);
}

static void make_target(void)
{
	budget_target_create();
	for (unsigned i = 0; i < ROWS; i++)
		budget_target_ns_add(i + 1, rows[i].backend);
}

static bool is_wanted(const struct row *row, char **names)
{
	bool any = !*names;

	for (; *names && !any; names++)
		any = !strcmp(*names, row->name);
	return any;
}

static int with_rows(char **names, void (*measure)(const struct row *row))
{
	make_target();
	for (unsigned i = 0; i < ROWS; i++)
		if (is_wanted(&rows[i], names))
			with_row(&rows[i], measure);
	return 0;
}

/* --- memory ----------------------------------------------------------------------------------- */

struct held {
	uint64_t heap, resident;
};

/* Of this process; exact, which the counters of /proc/PID/status are not. */
static uint64_t resident(void)
{
	unsigned long kib = 0;
	char line[256];
	FILE *file = fopen("/proc/self/smaps_rollup", "re");

	if (!file)
		die("/proc/self/smaps_rollup", strerror(errno));
	while (fgets(line, sizeof(line), file) && sscanf(line, "Anonymous: %lu kB", &kib) != 1)
		continue;
	fclose(file);
	return kib * UINT64_C(1024);
}

static struct held holds(void)
{
	struct mallinfo2 info = mallinfo2();

	return (struct held){ info.uordblks + info.hblkhd, resident() };
}

/* The target's process does what it is told: a step, a turn until it rests, say what it holds. */
static void serve(int fd)
{
	struct held held = { 0, 0 };
	char word;

	make_target();
	dprintf(fd, "%-64s", budget_target_address());
	while (read(fd, &word, 1) == 1) {
		if (word == 's')
			budget_target_step();
		else if (word == 't')
			budget_target_turn();
		else
			held = holds();
		if (write(fd, &held, sizeof(held)) != sizeof(held))
			break;
	}
	_exit(0);
}

static int served; /* the way to it */

static struct held ask(char word)
{
	struct held held;

	if (write(served, &word, 1) != 1 || read(served, &held, sizeof(held)) != sizeof(held))
		die("memory", "the target has ended");
	return held;
}

static void ask_step(void)
{
	ask('s');
}

static void load(const struct row *row)
{
	chance = SEED;
	while (host.completed < row->commands) {
		host_turn(row->commands);
		ask('t');
	}
}

static void print_held(const char *end, struct held before, struct held after)
{
	printf("%s heap %lld resident %lld\n", end, (long long)(after.heap - before.heap),
	       (long long)(after.resident - before.resident));
}

static void fork_target(char *address, size_t len)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		die("socketpair", strerror(errno));
	if (!fork()) {
		close(ends[0]);
		serve(ends[1]);
	}
	close(ends[1]);
	served = ends[0];
	budget_world_target = ask_step;
	if (recv(served, address, len, MSG_WAITALL) != (ssize_t)len)
		die("memory", "the target has ended");
	*strchr(address, ' ') = '\0';
}

static int memory(const char *name)
{
	struct held before[2], after[2];
	const struct row *row = rows;
	char address[64];

	while (strcmp(row->name, name))
		if (++row == rows + ROWS)
			die(name, "no such row");
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	host_prepare(row);
	fork_target(address, sizeof(address));
	before[0] = holds();
	before[1] = ask('?');
	host_open(address, row);
	load(row);
	after[0] = holds();
	after[1] = ask('?');
	print_held("host", before[0], after[0]);
	print_held("target", before[1], after[1]);
	return 0;
}

static int list(void)
{
	for (unsigned i = 0; i < ROWS; i++)
		printf("%s %u\n", rows[i].name, rows[i].connections * rows[i].depth);
	return 0;
}

static int pipe_room(void)
{
	printf("%zu\n", budget_world_room());
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	budget_world_thread = pthread_self();
	if (!strcmp(verb, "list"))
		return list();
	if (!strcmp(verb, "pipe"))
		return pipe_room();
	if (!strcmp(verb, "count"))
		return with_rows(argv + 2, count_row);
	if (!strcmp(verb, "trace"))
		return with_rows(argv + 2, trace_row);
	if (!strcmp(verb, "memory") && argc == 3)
		return memory(argv[2]);
	fputs("usage: budget_load list | count [ROW...] | trace [ROW...] | memory ROW | pipe\n",
	      stderr);
	return 2;
}
