/* rdma_target.c - the target, turned by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/log.h"
#include "storage/slow.h"
#include "target/target.h"
#include "world/rdma_target.h"

enum { TURNS_MAX = 20000 };

static struct weft_reactor *r, *queues_r; /* the control reactor; where queue pairs are */
static struct weft_target *target;
static uint64_t now_ns;
static struct weft_uri listens_on;
static uint16_t port;
static bool stopped, slow;

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

struct weft_target *case_target(void)
{
	return target;
}

struct weft_reactor *case_control(void)
{
	return r;
}

void case_turn_control(void)
{
	weft_reactor_turn(r, 0);
}

void case_turn(void)
{
	case_turn_control();
	if (queues_r != r)
		weft_reactor_turn(queues_r, 0);
}

void case_turns(unsigned n)
{
	while (n--)
		case_turn();
}

void case_advance(uint64_t ms)
{
	now_ns += ms * 1000000;
	case_turns(4);
}

static void must(int rc, const struct weft_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static struct weft_backend *open_memory(void)
{
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	must(weft_spec_parse("mem:16M", &spec, &err), &err);
	must(weft_backend_open(&be, &spec, &err), &err);
	return be;
}

static void add_namespace(struct weft_subsys *subsys)
{
	struct weft_ns_options options = { .nsid = 1, .block = 512 };
	struct weft_backend *be = slow ? slow_open() : open_memory();
	struct weft_err err = { "" };
	uint32_t nsid;

	must(weft_ns_add(subsys, &options, be, &nsid, &err), &err);
}

static void note_port(void *arg, const char *uri, uint16_t portid)
{
	struct weft_err err = { "" };

	must(weft_uri_parse(uri, &listens_on, &err), &err);
	port = (uint16_t)strtoul(strrchr(uri, ':') + 1, NULL, 10);
}

static void listen_on(const char *uri)
{
	static const struct weft_target_visitor visitor = { .listener = note_port };
	struct weft_err err = { "" };

	must(weft_uri_parse(uri, &listens_on, &err), &err);
	must(weft_listener_add(target, &listens_on, &err), &err);
	weft_target_visit(target, &visitor, NULL);
}

static void create(const char *ip)
{
	struct weft_target_options options = { .control = r,
					       .reactors = &queues_r,
					       .nreactors = 1,
					       .depth_max = CASE_DEPTH_MAX,
					       .io_queues_max = 8,
					       .queues_max = 32 };
	struct weft_subsys_options named = { .nqn = CASE_NQN, .allow_any_host = true };
	struct weft_err err = { "" };
	struct weft_subsys *subsys;
	char uri[80];

	must(weft_target_create(&target, &options, &err), &err);
	must(weft_subsys_add(target, &named, &subsys, &err), &err);
	add_namespace(subsys);
	snprintf(uri, sizeof(uri), strchr(ip, ':') ? "nvme+rdma://[%s]:0" : "nvme+rdma://%s:0", ip);
	listen_on(uri);
}

static void start(const char *ip, bool apart)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };
	struct weft_err err = { "" };

	weft_log_set_level(WEFT_LOG_ERROR);
	now_ns = 1000000000;
	rdma_verbs = &fabric_verbs;
	fabric_end_turn = case_turn;
	must(weft_reactor_create(&r, &options, &err), &err);
	queues_r = r;
	if (apart)
		must(weft_reactor_create(&queues_r, &options, &err), &err);
	create(ip);
}

void case_start(const char *ip)
{
	slow = false;
	start(ip, false);
}

void case_start_apart(const char *ip)
{
	slow = false;
	start(ip, true);
}

void case_start_slow(const char *ip)
{
	slow = true;
	start(ip, false);
}

static void on_stopped(void *arg)
{
	stopped = true;
}

void case_stop(void)
{
	stopped = false;
	weft_target_stop(target, on_stopped, NULL);
	/* An adapter that hands nothing back is waited for; time is ours. */
	for (int i = 0; i < TURNS_MAX && !stopped; i++) {
		now_ns += 1000000;
		case_turn();
	}
	assert_true(stopped);
	if (queues_r != r)
		weft_reactor_destroy(queues_r);
	weft_reactor_destroy(r);
	fabric_end_turn = NULL;
}

uint16_t case_port(void)
{
	return port;
}

void case_settle(void)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		if (strcmp(fabric_left(), " 1 id(s) 1 event channel(s)") == 0)
			return;
		now_ns += 1000000;
		case_turn();
	}
	fail_msg("the target still has%s", fabric_left());
}

void case_unlisten(void)
{
	struct weft_err err = { "" };

	must(weft_listener_remove(target, &listens_on, &err), &err);
}

void case_listen_again(void)
{
	char uri[80];

	case_unlisten();
	case_turns(8);
	snprintf(uri, sizeof(uri), "nvme+rdma://127.0.0.1:%u", port);
	listen_on(uri);
}
