/* ledger.c - what was written to each block, and so what may be found there. */
#include "ledger.h"

#include <errno.h>
#include <string.h>

#include "scheduler.h"

enum { HOSTS = 2, OWN = DISK_BLOCKS * 3 / 8 }; /* of each disk, for each host; the rest is shared */

static struct block {
	uint64_t issued, acked, seen, flushed; /* writes */
	uint64_t done, failed; /* of the last 64: bit 0 is the one that was issued last */
	bool writing;
	bool taken; /* a shared one */
} blocks[LEDGER_BLOCKS];
static bool once; /* each is carried out */
static unsigned epoch;
static bool dark; /* there is no power: what is heard now was said before, and may be gone */

void ledger_begin(bool with_once)
{
	once = with_once;
	memset(blocks, 0, sizeof(blocks));
	epoch = 0;
	dark = false;
}

unsigned ledger_epoch(void)
{
	return epoch;
}

/* --- stamps ----------------------------------------------------------------------------------- */

static uint64_t stamp(unsigned block, uint64_t n)
{
	return n ? (uint64_t)(block + 1) << 48 | n : 0;
}

/* The number in it. */
static uint64_t check_stamp(unsigned block, const uint64_t *words)
{
	uint64_t n = words[0] & 0xffffffffffff;

	must(words[0] == stamp(block, n));
	for (unsigned i = 1; i < LEDGER_WORDS; i++)
		must(words[i] == words[0]);
	return n;
}

/* --- whose ------------------------------------------------------------------------------------ */

static bool is_shared(unsigned block)
{
	return block % DISK_BLOCKS >= HOSTS * OWN;
}

static bool is_for(unsigned block, unsigned who)
{
	return is_shared(block) ? !blocks[block].taken : block % DISK_BLOCKS / OWN == who;
}

int ledger_take(unsigned who, bool write)
{
	unsigned i = (unsigned)sim_random(LEDGER_BLOCKS);

	if (!is_for(i, who) || (write && blocks[i].writing))
		return -1;
	blocks[i].taken = is_shared(i);
	blocks[i].writing |= write;
	return (int)i;
}

void ledger_put(unsigned block, bool write)
{
	blocks[block].taken = false;
	if (write)
		blocks[block].writing = false;
}

/* --- writes and reads ------------------------------------------------------------------------- */

void ledger_fill(unsigned block, uint64_t words[LEDGER_WORDS])
{
	uint64_t value = stamp(block, ++blocks[block].issued);

	blocks[block].done <<= 1;
	blocks[block].failed <<= 1;
	for (unsigned i = 0; i < LEDGER_WORDS; i++)
		words[i] = value;
}

void ledger_written(unsigned block, bool durable)
{
	struct block *b = &blocks[block];

	if (durable || !dark)
		b->acked = b->issued;
	if (durable)
		b->flushed = b->issued;
}

void ledger_failed(unsigned block, int rc)
{
	struct block *b = &blocks[block];

	must(rc == -ECONNRESET || !(b->done & 1));
	b->failed |= 1;
}

/* An older one than what somebody was told of undoes it, whether it is read or not. */
void ledger_carried_out(unsigned block, const uint64_t words[LEDGER_WORDS])
{
	struct block *b = &blocks[block];
	uint64_t n = check_stamp(block, words), bit;

	must(n && n <= b->issued && b->issued - n < 64);
	bit = UINT64_C(1) << (b->issued - n);
	if (n < ledger_floor(block) || b->failed & bit)
		sim_tell("block %u: %llu is carried out late, %llu was acknowledged%s", block,
			 (unsigned long long)n, (unsigned long long)ledger_floor(block),
			 b->failed & bit ? ", it had failed" : "");
	must(n >= ledger_floor(block));
	must(!(b->failed & bit));
	must(!once || !(b->done & bit));
	b->done |= bit;
}

uint64_t ledger_floor(unsigned block)
{
	const struct block *b = &blocks[block];

	return b->acked > b->seen ? b->acked : b->seen;
}

static void check_range(unsigned block, uint64_t n, uint64_t floor)
{
	const struct block *b = &blocks[block];

	if (n < floor || n > b->issued)
		sim_tell("block %u holds %llu, must be %llu to %llu", block, (unsigned long long)n,
			 (unsigned long long)floor, (unsigned long long)b->issued);
	must(n >= floor);
	must(n <= b->issued);
}

void ledger_found(unsigned block, uint64_t floor, const uint64_t words[LEDGER_WORDS])
{
	uint64_t n = check_stamp(block, words);

	check_range(block, n, floor);
	if (n > blocks[block].seen && !dark)
		blocks[block].seen = n;
}

void ledger_check(void)
{
	for (unsigned i = 0; i < LEDGER_BLOCKS; i++)
		check_range(i, check_stamp(i, disk_at(i / DISK_BLOCKS, i % DISK_BLOCKS)),
			    ledger_floor(i));
}

/* --- what lasts ------------------------------------------------------------------------------- */

void ledger_mark(unsigned disk, uint64_t marks[DISK_BLOCKS])
{
	for (unsigned i = 0; i < DISK_BLOCKS; i++)
		marks[i] = ledger_floor(disk * DISK_BLOCKS + i);
}

void ledger_flushed(unsigned disk, const uint64_t marks[DISK_BLOCKS])
{
	for (unsigned i = 0; i < DISK_BLOCKS; i++) {
		struct block *b = &blocks[disk * DISK_BLOCKS + i];

		if (marks[i] > b->flushed)
			b->flushed = marks[i];
	}
}

void ledger_lose_power(void)
{
	epoch++;
	dark = true;
	for (unsigned i = 0; i < LEDGER_BLOCKS; i++)
		blocks[i].acked = blocks[i].seen = blocks[i].flushed;
}

void ledger_restore_power(void)
{
	dark = false;
}
