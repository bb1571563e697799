/* budget_target.c - the target of bench/budget: its reactors are turned by who measures. */
#include "budget_target.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/target.h"

enum { DEPTH = 128, IO_QUEUES = 64, QUEUES = 4096 };

static struct weft_reactor *control, *worker;
static struct weft_target *target;
static struct weft_subsys *subsys;
static char address[64];

static void must(int rc, const struct weft_err *err)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "budget: target: %s\n", err->text);
	exit(1);
}

static void note_address(void *arg, const char *uri, uint16_t portid)
{
	snprintf(address, sizeof(address), "%s", uri);
}

void budget_target_create(void)
{
	static const struct weft_target_visitor visitor = { .listener = note_address };
	static const struct weft_subsys_options named = { .nqn = BUDGET_NQN,
							  .allow_any_host = true };
	const struct weft_reactor_options reactor = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	struct weft_target_options options = { .reactors = &worker,
					       .nreactors = 1,
					       .depth_max = DEPTH,
					       .io_queues_max = IO_QUEUES,
					       .queues_max = QUEUES };
	struct weft_err err = { "" };
	struct weft_uri uri;

	weft_log_set_level(WEFT_LOG_ERROR);
	must(weft_reactor_create(&control, &reactor, &err), &err);
	must(weft_reactor_create(&worker, &reactor, &err), &err);
	options.control = control;
	must(weft_target_create(&target, &options, &err), &err);
	must(weft_uri_parse("nvme+tcp://127.0.0.1:0", &uri, &err), &err);
	must(weft_listener_add(target, &uri, &err), &err);
	must(weft_subsys_add(target, &named, &subsys, &err), &err);
	weft_target_visit(target, &visitor, NULL);
}

const char *budget_target_address(void)
{
	return address;
}

void budget_target_ns_add(uint32_t nsid, const char *text)
{
	const struct weft_ns_options options = { .nsid = nsid, .block = 4096 };
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	must(weft_spec_parse(text, &spec, &err), &err);
	must(weft_backend_open(&be, &spec, &err), &err);
	must(weft_ns_add(subsys, &options, be, &nsid, &err), &err);
}

/* --- turns ------------------------------------------------------------------------------------ */

void budget_target_turn(void)
{
	do {
		weft_reactor_turn(worker, 0);
	} while (weft_reactor_busy(worker));
}

void budget_target_step(void)
{
	weft_reactor_turn(worker, 0);
	weft_reactor_turn(control, 0);
}
