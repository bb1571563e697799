/* target_ops.c - what happens on the target's side, as operations. */
#include "target_ops.h"

#include <errno.h>

#include "must.h"
#include "peer/input.h"
#include "program.h"
#include "storage/slow.h"
#include "world/world.h"

enum { ROUNDS_MAX = 1000 };

void turn_some(uint8_t how)
{
	unsigned n = how % 8 + 1;

	if (how >> 6 == 1 || how >> 6 == 2)
		world_turn_one((how >> 6) - 1, n);
	else
		world_turn(n);
}

void run_dry(void)
{
	unsigned rounds = 0;
	bool busy;

	do {
		must(rounds++ < ROUNDS_MAX);
		busy = world_relieve() || world_is_at_work();
		busy |= program.settle();
		/* A takeover that was asked for may have begun in these turns. */
		busy |= world_waits_for_time();
	} while (busy);
}

void op_clock(void)
{
	world_advance(u16() * 16ull);
}

void op_ns(void)
{
	uint8_t what = u8(), nsid = u8();
	uint16_t blocks = u16();

	switch (what % 3) {
	case 0:
		world_ns_remove(nsid);
		break;
	case 1:
		world_ns_add(nsid);
		break;
	default:
		world_ns_resize(nsid, blocks * 512ull % (1 << 20));
	}
}

void op_subsys(void)
{
	uint8_t what = u8();

	switch (what % 4) {
	case 0:
		world_host_allow();
		break;
	case 1:
		world_host_refuse();
		break;
	case 2:
		world_subsys_remove(what >> 2);
		break;
	default:
		if (what >> 3)
			world_ana(what >> 3);
		else
			world_any_host(what >> 2 & 1);
	}
}

void op_slow(void)
{
	static const int results[] = { 0, 0, 0, -EIO, -ENOSPC, -ENOMEM, -EOPNOTSUPP };
	uint8_t n = u8(), how = u8();

	if (how == 0xff)
		slow_refuse(n);
	else
		slow_end(n, results[how % (sizeof(results) / sizeof(results[0]))]);
}

void op_starve(void)
{
	uint8_t pool = u8();

	world_starve(pool, u8() % 4);
}

void op_feed(void)
{
	world_feed(u8());
}

void op_look(void)
{
	world_look();
}

void op_stop(void)
{
	world_stop();
}

void op_takeover(void)
{
	world_takeover(u8() % 2);
}
