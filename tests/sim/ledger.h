/* ledger.h - what was written to each block, and so what may be found there.
 *
 * A block holds a stamp: which block it is, and a number that grows with each write. Only one write
 * of a block is under way at a time, as NVMe asks for. So who reads it finds the last write that
 * was acknowledged before, or one that was issued since; never one that is older than what was seen
 * before, and never parts of two. When power is lost, "acknowledged" becomes "flushed".
 *
 * A write may fail with its target. What its host says of it then is held against it: that it was not
 * carried out, or that it is not known whether it was; in either case it will not be any more.
 *
 * Each host has blocks of its own. Others are everybody's in turn: who has one has it alone, and
 * what the one before wrote and lost sight of must not come up any more. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "disk.h"

enum {
	LEDGER_BLOCKS = DISKS * DISK_BLOCKS,
	LEDGER_WORDS = DISK_BLOCK / 8,
};

/* @once: no write may be carried out twice. */
void ledger_begin(bool once);
/* What storage holds is what it must. */
void ledger_check(void);
/* What was not flushed may be gone. */
void ledger_lose_power(void);
void ledger_restore_power(void);
unsigned ledger_epoch(void); /* how often it was */

/* A block for host @who, to read or, with @write, to write: -1, not now. */
int ledger_take(unsigned who, bool write);
void ledger_put(unsigned block, bool write);

/* The next write of @block, begun, and done. @durable: with FUA. */
void ledger_fill(unsigned block, uint64_t words[LEDGER_WORDS]);
void ledger_written(unsigned block, bool durable);
/* … or failed with its connection: -ECONNRESET, or for want of one: -ENOTCONN, -EUSERS. */
void ledger_failed(unsigned block, int rc);
/* Storage does one, as those say who tell. */
void ledger_carried_out(unsigned block, const uint64_t words[LEDGER_WORDS]);
/* The least that a read that begins now may find, and what it found. */
uint64_t ledger_floor(unsigned block);
void ledger_found(unsigned block, uint64_t floor, const uint64_t words[LEDGER_WORDS]);
/* A flush of @disk begins: @marks is what it covers; it is done. */
void ledger_mark(unsigned disk, uint64_t marks[DISK_BLOCKS]);
void ledger_flushed(unsigned disk, const uint64_t marks[DISK_BLOCKS]);

#endif
