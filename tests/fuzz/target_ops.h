/* target_ops.h - what happens on the target's side, as operations of a program (input.h). */
#ifndef WEFT_FUZZ_TARGET_OPS_H
#define WEFT_FUZZ_TARGET_OPS_H

#include <errno.h>

#include "input.h"
#include "slow.h"
#include "world.h"

static inline void op_clock(void)
{
	world_advance(u16() * 16ull);
}

static inline void op_ns(void)
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

static inline void op_subsys(void)
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
		world_any_host(what >> 2 & 1);
	}
}

static inline void op_slow(void)
{
	static const int results[] = { 0, 0, 0, -EIO, -ENOSPC, -ENOMEM, -EOPNOTSUPP };
	uint8_t n = u8(), how = u8();

	if (how == 0xff)
		slow_refuse(n);
	else
		slow_end(n, results[how % (sizeof(results) / sizeof(results[0]))]);
}

static inline void op_starve(void)
{
	uint8_t pool = u8();

	world_starve(pool, u8() % 4);
}

static inline void op_feed(void)
{
	world_feed(u8());
}

static inline void op_look(void)
{
	world_look();
}

static inline void op_stop(void)
{
	world_stop();
}

#endif
