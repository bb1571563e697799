/* load.c - the benches' load generator; see load.h.
 *
 *   issue ─▶ ring ─▶ one sendmsg ... one recv ─▶ every reply in it ─▶ issue
 *
 * Invariant: while running, `depth` operations are in flight; each owns its slot. */
#include "load.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	RX_BYTES = 1 << 20,
	IOV_BATCH = 1024,
	SUB_BITS = 6, /* histogram: 64 steps per power of two, under 1.6 % wide */
	BUCKETS = (64 - SUB_BITS) << SUB_BITS,
};

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("load: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t load_random(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* ---- sockets */

int load_connect(const struct load *l)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int one = 1, fd, rc;

	rc = getaddrinfo(l->host, l->port, &hints, &found);
	if (rc)
		die("%s: %s", l->host, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		die("connect to %s port %s: %s", l->host, l->port, strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	freeaddrinfo(found);
	return fd;
}

void load_write_all(int fd, const void *data, size_t n)
{
	if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("send: %s", strerror(errno));
}

void load_read_all(int fd, void *data, size_t n)
{
	ssize_t got = recv(fd, data, n, MSG_WAITALL);

	if (got != (ssize_t)n)
		die("the server closed the connection%s%s", got < 0 ? ": " : "",
		    got < 0 ? strerror(errno) : "");
}

/* ---- sending */

static struct item *ring_add(struct load *l)
{
	if (l->head - l->tail > l->ring_mask)
		die("send ring overrun");
	return &l->ring[l->head++ & l->ring_mask];
}

void *load_header(struct load *l, size_t n)
{
	struct item *item = ring_add(l);

	item->iov = (struct iovec){ item->header, n };
	return memset(item->header, 0, n);
}

void load_payload(struct load *l, size_t n)
{
	ring_add(l)->iov = (struct iovec){ l->payload, n };
}

static void ring_sent(struct load *l, size_t n)
{
	while (n) {
		struct iovec *iov = &l->ring[l->tail & l->ring_mask].iov;

		if (n < iov->iov_len) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= n;
			return;
		}
		n -= iov->iov_len;
		l->tail++;
	}
}

/* Sends what the socket takes, many operations at a time. */
static void flush(struct load *l)
{
	static struct iovec iov[IOV_BATCH];

	while (l->head != l->tail) {
		struct msghdr msg = { .msg_iov = iov };
		ssize_t n;

		for (uint32_t i = l->tail; i != l->head && msg.msg_iovlen < IOV_BATCH; i++)
			iov[msg.msg_iovlen++] = l->ring[i & l->ring_mask].iov;
		n = sendmsg(l->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("send: %s", strerror(errno));
		ring_sent(l, (size_t)n);
	}
}

/* ---- operations */

static void issue(struct load *l, unsigned slot)
{
	l->started[slot] = l->now_ns;
	l->in_flight++;
	l->framing->issue(l, slot);
}

static unsigned bucket_of(uint64_t ns)
{
	int shift;

	if (ns < 1 << SUB_BITS)
		return (unsigned)ns;
	shift = 63 - __builtin_clzll(ns) - SUB_BITS;
	return ((unsigned)(shift + 1) << SUB_BITS) + (unsigned)(ns >> shift) - (1 << SUB_BITS);
}

static uint64_t bucket_ns(unsigned bucket)
{
	unsigned shift = bucket >> SUB_BITS, step = bucket & ((1 << SUB_BITS) - 1);

	return shift ? (uint64_t)(step + (1 << SUB_BITS)) << (shift - 1) : step;
}

void load_done(struct load *l, unsigned slot)
{
	uint64_t took_ns;

	if (slot >= l->depth || !l->started[slot])
		die("a reply to command %u, which is not in flight", slot);
	took_ns = l->now_ns - l->started[slot];
	l->started[slot] = 0;
	l->in_flight--;
	l->done++;
	l->latency_sum_ns += took_ns;
	l->histogram[bucket_of(took_ns)]++;
	if (l->running)
		issue(l, slot);
}

void load_skip(struct load *l, uint64_t n, int slot)
{
	l->skip = n;
	l->skip_slot = slot;
}

/* ---- receiving */

static size_t skip_payload(struct load *l, size_t n)
{
	size_t take = n < l->skip ? n : l->skip;

	l->skip -= take;
	if (!l->skip && l->skip_slot != NO_SLOT)
		load_done(l, (unsigned)l->skip_slot);
	return take;
}

static void consume(struct load *l)
{
	size_t at = 0, n;

	do {
		n = l->skip ? skip_payload(l, l->have - at) :
			      l->framing->consume(l, l->rx + at, l->have - at);
		at += n;
	} while (n && at < l->have);
	l->have -= at;
	memmove(l->rx, l->rx + at, l->have);
}

/* Waits until something arrived; keeps sending meanwhile, if the socket was full. */
static void receive(struct load *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN | POLLOUT };
	ssize_t n;

	while (l->head != l->tail) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		if (p.revents & ~POLLOUT)
			break;
		flush(l);
	}
	n = recv(l->fd, l->rx + l->have, RX_BYTES - l->have, 0);
	if (n <= 0)
		die("the server closed the connection%s%s", n ? ": " : "",
		    n ? strerror(errno) : "");
	l->have += (size_t)n;
}

/* ---- a run */

static void forget(struct load *l)
{
	l->forgotten += l->done;
	l->done = l->latency_sum_ns = 0;
	memset(l->histogram, 0, BUCKETS * sizeof(*l->histogram));
}

static void run_until(struct load *l, uint64_t end_ns)
{
	while (l->in_flight && l->now_ns < end_ns) {
		flush(l);
		receive(l);
		l->now_ns = clock_ns();
		consume(l);
	}
}

/* Returns the seconds measured. */
static double run(struct load *l)
{
	uint64_t start_ns;
	double took;

	l->running = true;
	l->now_ns = clock_ns();
	for (unsigned slot = 0; slot < l->depth; slot++)
		issue(l, slot);
	run_until(l, l->now_ns + (uint64_t)(l->warm_s * 1e9));
	forget(l);
	start_ns = l->now_ns;
	run_until(l, start_ns + (uint64_t)(l->seconds * 1e9));
	took = (double)(l->now_ns - start_ns) / 1e9;
	return took;
}

/* Lets what is in flight finish, so that the server sees an orderly end. */
static void drain(struct load *l)
{
	l->running = false;
	run_until(l, UINT64_MAX);
	close(l->fd);
}

static double percentile_us(const struct load *l, double fraction)
{
	uint64_t rank = (uint64_t)((double)l->done * fraction), seen = 0;

	for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
		seen += l->histogram[bucket];
		if (seen > rank)
			return (double)bucket_ns(bucket) / 1e3;
	}
	return 0;
}

static void print_json(const struct load *l, double took)
{
	double iops = (double)l->done / took;

	printf("{\"rw\": \"%s\", \"bytes\": %u, \"depth\": %u, \"seconds\": %.3f, "
	       "\"ops\": %" PRIu64 ", \"ops_all\": %" PRIu64 ", \"iops\": %.0f, \"mib_s\": %.1f, "
	       "\"latency_us\": {\"mean\": %.1f, \"p50\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f}}\n",
	       l->write ? "write" : "read", l->bytes, l->depth, took, l->done,
	       l->forgotten + l->done, iops, iops * l->bytes / (1 << 20),
	       l->done ? (double)l->latency_sum_ns / (double)l->done / 1e3 : 0,
	       percentile_us(l, 0.5), percentile_us(l, 0.99), percentile_us(l, 0.999));
}

/* ---- the command line */

static const char usage[] =
	"usage: load [options] HOST PORT [NQN]\n"
	"  --rw read|write   what to do at random offsets (read)\n"
	"  --bs BYTES        bytes per operation (4096)\n"
	"  --depth N         operations in flight (32)\n"
	"  --time SECONDS    how long to measure (3)\n"
	"  --warm SECONDS    how long to run before that (0.5)\n"
	"  --flow            keep NVMe's SQ flow control, and with it a response to every read\n"
	"With an NQN the server is an NVMe/TCP target, without one it is bare.\n";

static const struct option options[] = {
	{ "rw", required_argument, NULL, 'r' },    { "bs", required_argument, NULL, 'b' },
	{ "depth", required_argument, NULL, 'd' }, { "time", required_argument, NULL, 't' },
	{ "warm", required_argument, NULL, 'w' },  { "flow", no_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },        {},
};

static void take_option(struct load *l, int option)
{
	switch (option) {
	case 'r':
		l->write = !strcmp(optarg, "write");
		break;
	case 'b':
		l->bytes = (uint32_t)strtoul(optarg, NULL, 0);
		break;
	case 'd':
		l->depth = (uint32_t)strtoul(optarg, NULL, 0);
		break;
	case 't':
		l->seconds = strtod(optarg, NULL);
		break;
	case 'w':
		l->warm_s = strtod(optarg, NULL);
		break;
	case 'f':
		l->flow_control = true;
		break;
	default:
		fputs(usage, option == 'h' ? stdout : stderr);
		exit(option == 'h' ? 0 : 2);
	}
}

static void parse(struct load *l, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(l, option);
	if (argc - optind < 2 || argc - optind > 3)
		take_option(l, '?');
	if (!l->bytes || l->bytes % 512 || l->bytes > 1 << 26 || !l->depth || l->depth > 65534)
		die("--bs is a multiple of 512 up to 64 MiB, --depth 1 to 65534");
	l->host = argv[optind];
	l->port = argv[optind + 1];
	l->nqn = argv[optind + 2];
	l->framing = l->nqn ? &nvme_framing : &plain_framing;
}

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory");
	return p;
}

static void prepare(struct load *l)
{
	uint32_t size = 1;

	l->framing->open(l);
	while (size < l->depth * l->items_per_op)
		size *= 2;
	l->ring = allocate(size, sizeof(*l->ring));
	l->ring_mask = size - 1;
	l->rx = allocate(RX_BYTES, 1);
	l->payload = allocate(l->bytes, 1);
	memset(l->payload, 0xa5, l->bytes);
	l->started = allocate(l->depth, sizeof(*l->started));
	l->histogram = allocate(BUCKETS, sizeof(*l->histogram));
}

int main(int argc, char **argv)
{
	static struct load l = {
		.bytes = 4096,
		.depth = 32,
		.seconds = 3,
		.warm_s = 0.5,
		.skip_slot = NO_SLOT,
	};
	double took;

	parse(&l, argc, argv);
	prepare(&l);
	took = run(&l);
	print_json(&l, took);
	drain(&l);
	return 0;
}
