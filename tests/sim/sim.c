/* sim.c - stories: hosts, targets and shared storage, and a seed's worth of trouble.
 *
 *   sim                          every story with its first seeds, as TAP
 *   sim [-v] STORY FIRST [LAST]  one of them with these seeds; -v tells what happens
 *
 * No write that was acknowledged may be lost, nor undone by an older one that comes late; no read may
 * find what was never there. A seed that fails does so every time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "faults.h"
#include "wire.h"

enum { APPS = 2, FAULTS = 12, SEEDS = 10 };

static const struct story {
	const char *name;
	bool several; /* paths: each host uses all ports, and not only one */
	bool silent;  /* also losses that nobody is told of */
} stories[] = {
	{ "resets", false, false },
	{ "silence", false, true },
	{ "resets-of-paths", true, false },
	{ "silence-of-paths", true, true },
};
#define STORIES (sizeof(stories) / sizeof(stories[0]))

static struct node nodes[1];
static struct app apps[APPS];

/* The way that host @i goes, or all ways. */
static void connect_app(const struct story *story, unsigned i)
{
	static const char form[] = "nvme+tcp://127.0.0.1:%u/" SIM_NQN "?kato=2s";
	char uris[512];
	int n;

	n = snprintf(uris, sizeof(uris), form, nodes[0].ports[i]);
	if (story->several) {
		uris[n++] = ',';
		snprintf(uris + n, sizeof(uris) - (size_t)n, form, nodes[0].ports[1 - i]);
	}
	app_start(&apps[i], i, uris);
}

static void begin(const struct story *story, uint64_t seed)
{
	world_begin(story->name, seed);
	disk_begin();
	node_start(&nodes[0], "target");
	for (unsigned i = 0; i < APPS; i++)
		connect_app(story, i);
}

static bool disk_is_idle(void *arg)
{
	return !disk_busy();
}

/* What is late has time to come, and to be seen. */
static void settle(void)
{
	for (unsigned i = 0; i < APPS; i++)
		app_end(&apps[i]);
	world_run(5000 * MS);
	must(world_run_until(disk_is_idle, NULL, 10000 * MS));
}

static uint64_t end(void)
{
	uint64_t ios = 0;

	for (unsigned i = 0; i < APPS; i++) {
		app_check(&apps[i]);
		ios += apps[i].ios_done;
		app_close(&apps[i]);
	}
	node_stop(&nodes[0]);
	must(!wires_count());
	return ios;
}

static uint64_t tell_seed(const struct story *story, uint64_t seed)
{
	const struct faults faults = { nodes, 1, apps, APPS, story->silent };

	begin(story, seed);
	for (int i = 0; i < FAULTS; i++)
		faults_next(&faults);
	settle();
	return end();
}

static void tell(const struct story *story, uint64_t first, uint64_t last)
{
	uint64_t ios = 0;

	for (uint64_t seed = first; seed <= last; seed++)
		ios += tell_seed(story, seed);
	printf("ok %u - %s: seeds %llu to %llu, %llu I/Os\n", (unsigned)(story - stories) + 1,
	       story->name, (unsigned long long)first, (unsigned long long)last,
	       (unsigned long long)ios);
	fflush(stdout);
}

static const struct story *find(const char *name)
{
	for (unsigned i = 0; i < STORIES; i++)
		if (!strcmp(stories[i].name, name))
			return &stories[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct story *story;
	uint64_t first;

	world_verbose = argc > 1 && !strcmp(argv[1], "-v");
	argc -= world_verbose;
	argv += world_verbose;
	weft_log_set_level(world_verbose ? WEFT_LOG_INFO : WEFT_LOG_ERROR);
	if (argc < 2) {
		printf("1..%u\n", (unsigned)STORIES);
		for (unsigned i = 0; i < STORIES; i++)
			tell(&stories[i], 1, SEEDS);
		return 0;
	}
	story = find(argv[1]);
	if (!story || argc < 3) {
		fprintf(stderr, "usage: sim [-v] STORY FIRST [LAST]\n");
		return 2;
	}
	first = strtoull(argv[2], NULL, 0);
	tell(story, first, argc > 3 ? strtoull(argv[3], NULL, 0) : first);
	return 0;
}
