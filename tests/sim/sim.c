/* sim.c - stories: hosts, targets and shared storage, and a seed's worth of trouble.
 *
 *   sim                          every story with its first seeds, as TAP
 *   sim [-v] STORY FIRST [LAST]  one of them with these seeds; -v tells what happens
 *
 * No write that was acknowledged may be lost, nor undone by an older one that comes late; no read
 * may find what was never there; nobody waits for ever. A seed that fails does so every time: the
 * first of every story is told twice, to be sure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "faults.h"
#include "foreign_target.h"
#include "network.h"
#include "ports.h"
#include "state.h"

enum { APPS = 2, FAULTS = 25, SEEDS = 8 };

#define BIT(kind) (1u << FAULT_##kind)
enum {
	SILENCE = BIT(RESET) | BIT(CUT) | BIT(STILL),
	DEATHS = BIT(RESET) | BIT(KILL) | BIT(CRASH) | BIT(STOP) | BIT(POWER),
	ORDERS = BIT(ANA) | BIT(MOVE) | BIT(DRAIN),
};

/* A host that hears of the end of a connection takes it for the end of its commands: the second
 * one deserves that. */
static const struct foreign_kind slow = { .cqt_ms = 3000 }, quick = { .cqt_ms = 0 };

static const struct story {
	const char *name;
	unsigned nodes;                     /* targets; several are a cluster */
	bool several;                       /* paths: each host uses all ports, and not only one */
	unsigned kinds;                     /* of faults */
	const struct foreign_kind *strange; /* the target; NULL: ours */
	const char *words;                  /* of the hosts' URIs */
	bool may_fail, once;                /* I/O, for want of a connection; no write twice */
	bool all_live;                      /* no path may be given up */
} stories[] = {
	{ "resets", 1, false, BIT(RESET) },
	{ "silence", 1, false, SILENCE },
	{ "resets-of-paths", 1, true, BIT(RESET) },
	{ "silence-of-paths", 1, true, SILENCE },
	{ "deaths", 1, true, DEATHS | BIT(ANA) },
	{ "cluster-orders", 2, true, BIT(RESET) | ORDERS },
	{ "cluster-deaths", 2, true, DEATHS },
	{ "cluster", 2, true, SILENCE | DEATHS | ORDERS | BIT(ERROR) },
	{ "stranger", 1, false, BIT(CUT), &slow },
	{ "stranger-of-paths", 1, true, BIT(CUT), &slow },
	{ "stranger-resets", 1, true, BIT(CUT) | BIT(RESET), &quick },
	{ "stranger-given-up", 1, false, BIT(CUT), &slow,
	  "&loss_timeout=1s&connect_timeout=300ms&depth=4", true },
	{ "stranger-once", 1, true, BIT(CUT) | BIT(RESET), &quick, "&resend=never", true, true },
	{ "busy", 2, true, BIT(BUSY), &quick, "&probe=20ms", .all_live = true },
};
#define STORIES (sizeof(stories) / sizeof(stories[0]))

/* Writes whose host had no connection any more. */
struct failed {
	unsigned unknown, undone;
};

static struct node nodes[NODES_MAX];
static struct app apps[APPS];

/* --- one seed --------------------------------------------------------------------------------- */

/* The way that host @i goes, or all ways, in an order of its own. */
static void connect_app(const struct story *story, unsigned i)
{
	static char uris[APPS][512];
	unsigned ways = story->several ? story->nodes * NODE_PORTS : 1;
	int n = 0;

	for (unsigned j = 0; j < ways; j++) {
		unsigned way = (i + j) % (story->nodes * NODE_PORTS);

		n += snprintf(uris[i] + n, sizeof(uris[i]) - (size_t)n,
			      "%snvme+tcp://127.0.0.1:%u/" SIM_NQN "?kato=2s%s", j ? "," : "",
			      nodes[way / NODE_PORTS].ports[way % NODE_PORTS],
			      story->words ? story->words : "");
	}
	app_start(&apps[i], i, uris[i], story->may_fail);
}

static void begin_story(const struct story *story, uint64_t seed)
{
	sim_begin(story->name, seed);
	ports_begin();
	disks_begin();
	state_begin();
	ledger_begin(story->once);
	for (unsigned i = 0; i < story->nodes; i++) {
		node_init(&nodes[i], i, story->nodes, story->strange);
		node_start(&nodes[i]);
	}
	for (unsigned i = 0; i < APPS; i++)
		connect_app(story, i);
}

static bool disks_are_idle(void *arg)
{
	return !disks_busy() && !foreign_targets_busy();
}

/* What is late has time to come, and to be seen. */
static void wait_for_idle(void)
{
	for (unsigned i = 0; i < APPS; i++)
		app_end(&apps[i]);
	sim_run(5000 * MS);
	must(sim_run_until(disks_are_idle, NULL, 20000 * MS));
	ledger_check();
}

static uint64_t end_story(const struct story *story)
{
	uint64_t ios = 0;

	for (unsigned i = 0; i < APPS; i++) {
		ios += apps[i].ios_done;
		app_close(&apps[i]);
	}
	for (unsigned i = 0; i < story->nodes; i++)
		node_stop(&nodes[i]);
	nodes_bury(true);
	sim_run(1000 * MS);
	state_end();
	must(!network_count());
	return ios;
}

static void count_failed(struct failed *failed)
{
	for (unsigned i = 0; i < APPS; i++) {
		failed->unknown += apps[i].unknown;
		failed->undone += apps[i].undone;
	}
}

static void check_paths(const struct story *story)
{
	struct weft_ctrl_info info;

	for (unsigned i = 0; i < APPS && story->all_live; i++) {
		weft_ctrl_info(apps[i].ctrl, &info);
		must(!info.losses);
	}
}

static uint64_t run_seed(const struct story *story, uint64_t seed, unsigned count[FAULT_KINDS],
			 struct failed *failed)
{
	/* A stranger's hosts get over a short one without losing it. */
	struct faults faults = { nodes, story->nodes, apps,
				 APPS,  story->kinds, story->strange ? 10 : 1,
				 { 0 } };

	begin_story(story, seed);
	faults_run(&faults, FAULTS);
	wait_for_idle();
	count_failed(failed);
	check_paths(story);
	for (unsigned i = 0; i < FAULT_KINDS; i++)
		count[i] += faults.count[i];
	return end_story(story);
}

/* --- stories ---------------------------------------------------------------------------------- */

static void check_again(const struct story *story, uint64_t seed)
{
	unsigned count[FAULT_KINDS] = { 0 };
	struct failed failed = { 0 };
	uint64_t now, chance;

	run_seed(story, seed, count, &failed);
	now = sim_now();
	chance = sim_random(UINT64_MAX);
	run_seed(story, seed, count, &failed);
	must(sim_now() == now && sim_random(UINT64_MAX) == chance);
}

static void run_story(const struct story *story, uint64_t first, uint64_t last)
{
	unsigned count[FAULT_KINDS] = { 0 };
	struct failed failed = { 0 };
	char failures[256];
	uint64_t ios = 0;

	sim_suspicions = 0;
	for (uint64_t seed = first; seed <= last; seed++)
		ios += run_seed(story, seed, count, &failed);
	faults_format(count, failures, sizeof(failures));
	printf("ok %u - %s\n# seeds %llu to %llu, %llu I/Os, %s\n", (unsigned)(story - stories) + 1,
	       story->name, (unsigned long long)first, (unsigned long long)last,
	       (unsigned long long)ios, failures);
	if (story->may_fail)
		printf("# writes that failed: %u unknown, %u not carried out\n", failed.unknown,
		       failed.undone);
	if (story->all_live)
		printf("# paths that were suspected, and lived: %u\n", sim_suspicions);
	fflush(stdout);
}

static const struct story *find_story(const char *name)
{
	for (unsigned i = 0; i < STORIES; i++)
		if (!strcmp(stories[i].name, name))
			return &stories[i];
	return NULL;
}

static int run_stories(void)
{
	printf("1..%u\n", (unsigned)STORIES);
	for (unsigned i = 0; i < STORIES; i++) {
		printf("# running %s\n", stories[i].name);
		fflush(stdout);
		check_again(&stories[i], 1);
		run_story(&stories[i], 1, SEEDS);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct story *story;
	uint64_t first;

	sim_verbose = argc > 1 && !strcmp(argv[1], "-v");
	argc -= sim_verbose;
	argv += sim_verbose;
	weft_log_set_level(sim_verbose ? WEFT_LOG_INFO : WEFT_LOG_ERROR);
	if (argc < 2)
		return run_stories();
	story = find_story(argv[1]);
	if (!story || argc < 3) {
		fprintf(stderr, "usage: sim [-v] STORY FIRST [LAST]\n");
		return 2;
	}
	first = strtoull(argv[2], NULL, 0);
	run_story(story, first, argc > 3 ? strtoull(argv[3], NULL, 0) : first);
	return 0;
}
