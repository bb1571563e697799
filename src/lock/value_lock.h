/* value_lock.h - all processes that have a file open must hold the same value for it.
 *
 * Each holds a shared lock on one byte, the one that stands for its value. A lock on another byte
 * of the range means that somebody holds a different value. */
#ifndef WEFT_LOCK_VALUE_LOCK_H
#define WEFT_LOCK_VALUE_LOCK_H

#include <stdint.h>
#include <sys/types.h>

/* A range far behind the data, with a byte for each possible value. */
struct weft_value_range {
	off_t from;
	uint64_t count;
};

/* Holds the value @as, below at->count, until @fd is closed. -ENOTUNIQ: another process holds
 * @other, and we hold nothing. */
int weft_value_lock(int fd, const struct weft_value_range *at, uint64_t as, uint64_t *other);
void weft_value_unlock(int fd, const struct weft_value_range *at);

#endif
