/* pump.c - see pump.h.
 *
 * One connection is asked again and again whether something came; several are, through epoll, whose
 * edges suffice: a recv that got less than it had room for has taken all there was. */
#include "pump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { BUFFER_BYTES = 256 << 10, EVENTS = 64 };

static uint8_t in[BUFFER_BYTES]; /* stays in a core's cache */

_Noreturn void pump_die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void queue_requests(struct pump *p, struct pump_conn *conn, uint64_t now)
{
	if (conn->started - conn->done > conn->depth - conn->batch)
		return;
	while (conn->started - conn->done < conn->depth) {
		conn->since_ns[conn->started++ % conn->depth] = now;
		conn->unsent += p->request;
	}
}

static void send_some(struct pump_conn *conn)
{
	while (conn->unsent) {
		uint64_t at = conn->sent % conn->ring_bytes, end = conn->ring_bytes - at;
		struct iovec iov[2] = {
			{ (void *)(conn->ring + at), conn->unsent < end ? conn->unsent : end },
			{ (void *)conn->ring, conn->unsent < end ? 0 : conn->unsent - end },
		};
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
		ssize_t n;

		if (iov[1].iov_len > at)
			iov[1].iov_len = at;
		n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			pump_die("send");
		conn->sent += (uint64_t)n;
		conn->unsent -= (uint64_t)n;
	}
}

/* @conn->arrived is how far into a reply @in begins. */
static void count_replies(struct pump *p, struct pump_conn *conn, uint64_t bytes, uint64_t now)
{
	uint64_t at = conn->arrived ? p->reply - conn->arrived : 0;

	for (; at < bytes; at += p->reply)
		if (in[at] != p->reply_type)
			pump_die("a reply that is none");
	for (conn->arrived += bytes; conn->arrived >= p->reply; conn->arrived -= p->reply) {
		weft_hist_add(&p->latency, now - conn->since_ns[conn->done++ % conn->depth]);
		p->done++;
	}
}

static bool receive_some(struct pump *p, struct pump_conn *conn, uint64_t *now)
{
	bool some = false;
	ssize_t n;

	do {
		n = recv(conn->fd, in, sizeof(in), 0);
		if (n < 0 && errno == EAGAIN)
			return some;
		if (n <= 0)
			pump_die("recv");
		*now = now_ns();
		count_replies(p, conn, (uint64_t)n, *now);
		some = true;
	} while (n == sizeof(in));
	return true;
}

static void pump_conn_poll(struct pump *p, struct pump_conn *conn)
{
	uint64_t now;

	if (receive_some(p, conn, &now))
		queue_requests(p, conn, now);
	send_some(conn);
}

static void pump_poll_ready(struct pump *p)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(p->epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < n; i++)
		pump_conn_poll(p, events[i].data.ptr);
}

static void run_until(struct pump *p, uint64_t end)
{
	while (now_ns() < end) {
		if (p->count == 1)
			pump_conn_poll(p, p->conns);
		else
			pump_poll_ready(p);
	}
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void print_json_report(const struct pump *p, uint64_t ops, double took, double cpu)
{
	printf("{\"iops\": %.0f, \"mean_us\": %.3f, \"p50_us\": %.3f, \"p99_us\": %.3f, "
	       "\"p9999_us\": %.3f, \"cpu_us\": %.3f}\n",
	       (double)ops / took, weft_hist_mean(&p->latency) / 1e3,
	       (double)weft_hist_percentile(&p->latency, 50) / 1e3,
	       (double)weft_hist_percentile(&p->latency, 99) / 1e3,
	       (double)weft_hist_percentile(&p->latency, 99.99) / 1e3, cpu * 1e6 / (double)ops);
}

static void epoll_add(struct pump *p, struct pump_conn *conn)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = conn };

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, conn->fd, &ev) < 0)
		pump_die("epoll_ctl");
}

static void start_conns(struct pump *p)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < p->count; i++) {
		epoll_add(p, &p->conns[i]);
		queue_requests(p, &p->conns[i], now);
		send_some(&p->conns[i]);
	}
}

void pump_init(struct pump *p, uint32_t count, uint32_t depth, uint32_t part)
{
	p->count = count;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->conns = calloc(count, sizeof(*p->conns));
	if (p->epoll_fd < 0 || !p->conns)
		pump_die("epoll");
	for (uint32_t i = 0; i < count; i++) {
		struct pump_conn *conn = &p->conns[i];

		conn->depth = depth / count + (i < depth % count);
		conn->batch = (conn->depth + part - 1) / part;
		conn->since_ns = calloc(conn->depth, sizeof(*conn->since_ns));
		if (!conn->since_ns)
			pump_die("calloc");
	}
}

void pump_run(struct pump *p, double warmup_s, double seconds)
{
	uint64_t begin, done_before;
	double cpu;

	start_conns(p);
	run_until(p, now_ns() + (uint64_t)(warmup_s * 1e9));
	p->latency = (struct weft_hist){};
	done_before = p->done;
	cpu = cpu_seconds();
	begin = now_ns();
	run_until(p, begin + (uint64_t)(seconds * 1e9));
	print_json_report(p, p->done - done_before, (double)(now_ns() - begin) / 1e9,
			  cpu_seconds() - cpu);
}
