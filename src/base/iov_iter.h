/* iov_iter.h - a position in a list of iovecs, which only moves forward (as the kernel's
 * iov_iter).
 *
 * It has no end of its own: whoever moves it knows how many bytes there are. */
#ifndef WEFT_BASE_IOV_ITER_H
#define WEFT_BASE_IOV_ITER_H

#include <stddef.h>
#include <sys/uio.h>

struct weft_iov_iter {
	const struct iovec *iov;
	size_t skip; /* bytes of @iov, perhaps more than it has */
};

/* The longest contiguous part of the next @len bytes, which are not 0; moves behind it. */
static inline struct iovec weft_iov_iter_next(struct weft_iov_iter *iter, size_t len)
{
	struct iovec part;

	while (iter->skip >= iter->iov->iov_len) {
		iter->skip -= iter->iov->iov_len;
		iter->iov++;
	}
	part.iov_base = (char *)iter->iov->iov_base + iter->skip;
	part.iov_len = iter->iov->iov_len - iter->skip;
	if (part.iov_len > len)
		part.iov_len = len;
	iter->skip += part.iov_len;
	return part;
}

static inline void weft_iov_iter_advance(struct weft_iov_iter *iter, size_t len)
{
	while (len)
		len -= weft_iov_iter_next(iter, len).iov_len;
}

/* Fills at most @room parts with the next @len bytes; returns how many, moves behind them, and
 * leaves in @len what did not fit. */
static inline int weft_iov_iter_map(struct weft_iov_iter *iter, struct iovec *out, int room,
				    size_t *len)
{
	int n = 0;

	while (*len && n < room) {
		out[n] = weft_iov_iter_next(iter, *len);
		*len -= out[n++].iov_len;
	}
	return n;
}

#endif
