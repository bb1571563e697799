/* agree.h - several who have a file open say the same number of something, or learn that they do
 * not. */
#ifndef WEFT_BASE_AGREE_H
#define WEFT_BASE_AGREE_H

#include <stdint.h>
#include <sys/types.h>

/* Far behind the data, where the bytes stand for the numbers that can be said. */
struct weft_agree {
	off_t from;
	uint64_t count;
};

/* Says @as, below at->count, as long as @fd is open. -ENOTUNIQ: another says @other, and we say
 * nothing. */
int weft_agree(int fd, const struct weft_agree *at, uint64_t as, uint64_t *other);
void weft_agree_end(int fd, const struct weft_agree *at);

#endif
