/* crowd.c - load over many connections that somebody else has opened, and hands over as
 * descriptors.
 *
 * What it sends comes from standard input: whole requests, sent round and round on every
 * connection. So it costs next to nothing itself, and knows no protocol: what is measured is the
 * server.
 *
 * usage: crowd REQUEST REPLY FIRST DEPTH WARMUP SECONDS FD... <REQUESTS
 *        bytes of a request and of a reply; a reply's first byte; in flight over all; seconds */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "pump.h"

enum { RING_MAX = 4 << 20, FIXED_ARGS = 7, BATCHES = 4 };

static uint8_t ring[RING_MAX];

int main(int argc, char **argv)
{
	static struct pump p;
	uint64_t bytes;

	if (argc <= FIXED_ARGS) {
		fputs("usage: crowd REQUEST REPLY FIRST DEPTH WARMUP SECONDS FD... <REQUESTS\n",
		      stderr);
		return 2;
	}
	p.request = (uint32_t)atoi(argv[1]);
	p.reply = (uint32_t)atoi(argv[2]);
	p.reply_type = (uint8_t)atoi(argv[3]);
	pump_init(&p, (uint32_t)(argc - FIXED_ARGS), (uint32_t)atoi(argv[4]), BATCHES);
	bytes = fread(ring, 1, sizeof(ring), stdin);
	errno = EINVAL;
	if (!bytes || bytes % p.request)
		pump_die("standard input");
	for (uint32_t i = 0; i < p.count; i++) {
		p.conns[i].fd = atoi(argv[FIXED_ARGS + i]);
		p.conns[i].ring = ring;
		p.conns[i].ring_bytes = bytes;
	}
	pump_run(&p, atof(argv[5]), atof(argv[6]));
	return 0;
}
