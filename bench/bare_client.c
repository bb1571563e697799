/* bare_client.c - the other end of bare.c: the bytes of NVMe/TCP without NVMe/TCP.
 *
 *   read:  72 out, 24 + data in          write: 72 + data out, 24 in
 *
 * One thread keeps --depth operations in flight: one send for all that may go, one recv for all that
 * has come. The first message tells the server both lengths; from then on both sides only count.
 *
 * usage: bare_client --rw read|write --bs BYTES --depth N --time SECONDS --warmup SECONDS PORT */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/hist.h"

enum { COMMAND = 72, RESPONSE = 24, BUFFER_BYTES = 1 << 20, DEPTH_MAX = 1024 };

struct client {
	bool write;
	uint32_t bytes, depth;
	double seconds, warmup;
	int fd;
	uint32_t request, reply; /* bytes of each */
	uint64_t unsent;         /* bytes of requests that may go */
	uint64_t arrived;        /* bytes of the reply that is under way */
	uint64_t started, done;  /* operations; replies come in the order of the requests */
	uint64_t since_ns[DEPTH_MAX];
	struct weft_hist latency;
};

static uint8_t out[BUFFER_BYTES], in[BUFFER_BYTES];

static void die(const char *what)
{
	fprintf(stderr, "bare_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void start_some(struct client *c, uint64_t now)
{
	while (c->started - c->done < c->depth) {
		c->since_ns[c->started++ % c->depth] = now;
		c->unsent += c->request;
	}
}

static void send_some(struct client *c)
{
	ssize_t n;

	while (c->unsent) {
		n = send(c->fd, out, c->unsent < sizeof(out) ? c->unsent : sizeof(out),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("send");
		c->unsent -= (uint64_t)n;
	}
}

/* Waits for replies; where the socket was full, also for room. */
static uint64_t receive_some(struct client *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN | POLLOUT };
	ssize_t n;

	while (c->unsent && poll(&p, 1, -1) >= 0 && !(p.revents & ~POLLOUT))
		send_some(c);
	n = recv(c->fd, in, sizeof(in), 0);
	if (n <= 0)
		die("recv");
	return (uint64_t)n;
}

static void count(struct client *c, uint64_t bytes, uint64_t now)
{
	for (c->arrived += bytes; c->arrived >= c->reply; c->arrived -= c->reply)
		weft_hist_add(&c->latency, now - c->since_ns[c->done++ % c->depth]);
}

static void run_until(struct client *c, uint64_t end)
{
	uint64_t now = now_ns();

	while (now < end) {
		start_some(c, now);
		send_some(c);
		uint64_t bytes = receive_some(c);

		now = now_ns();
		count(c, bytes, now);
	}
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(struct client *c)
{
	uint64_t begin, done_before;
	double cpu, took;

	run_until(c, now_ns() + (uint64_t)(c->warmup * 1e9));
	c->latency = (struct weft_hist){ 0 };
	done_before = c->done;
	cpu = cpu_seconds();
	begin = now_ns();
	run_until(c, begin + (uint64_t)(c->seconds * 1e9));
	took = (double)(now_ns() - begin) / 1e9;
	printf("{\"iops\": %.0f, \"ops\": %llu, \"ops_all\": %llu, \"p50_ns\": %llu, "
	       "\"p99_ns\": %llu, \"cpu_us\": %.3f}\n",
	       (double)(c->done - done_before) / took, (unsigned long long)(c->done - done_before),
	       (unsigned long long)c->done,
	       (unsigned long long)weft_hist_percentile(&c->latency, 50),
	       (unsigned long long)weft_hist_percentile(&c->latency, 99),
	       (cpu_seconds() - cpu) * 1e6 / (double)(c->done - done_before));
}

static void open_connection(struct client *c, int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		die("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->request = COMMAND + (c->write ? c->bytes : 0);
	c->reply = RESPONSE + (c->write ? 0 : c->bytes);
	if (send(c->fd, &c->request, 4, MSG_MORE) != 4 || send(c->fd, &c->reply, 4, 0) != 4)
		die("send");
}

static const struct option options[] = {
	{ "rw", required_argument, NULL, 'r' },     { "bs", required_argument, NULL, 'b' },
	{ "depth", required_argument, NULL, 'd' },  { "time", required_argument, NULL, 't' },
	{ "warmup", required_argument, NULL, 'w' }, {},
};

static bool take_option(struct client *c, int option)
{
	switch (option) {
	case 'r':
		c->write = !strcmp(optarg, "write");
		return true;
	case 'b':
		c->bytes = (uint32_t)strtoul(optarg, NULL, 0);
		return true;
	case 'd':
		c->depth = (uint32_t)strtoul(optarg, NULL, 0);
		return c->depth && c->depth <= DEPTH_MAX;
	case 't':
		c->seconds = strtod(optarg, NULL);
		return true;
	case 'w':
		c->warmup = strtod(optarg, NULL);
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static struct client c = { .bytes = 4096, .depth = 32, .seconds = 1, .warmup = 0.3 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(&c, option))
			return 2;
	if (optind + 1 != argc)
		return 2;
	open_connection(&c, atoi(argv[optind]));
	run(&c);
	return 0;
}
