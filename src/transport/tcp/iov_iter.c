/* iov_iter.c - a position in a command's iovecs, which only moves forward (as the kernel's
 * iov_iter). */
#include <string.h>

#include "transport/tcp/link.h"

/* Moves to the next byte; there is at least one more. */
static void skip_empty_iovecs(struct tcp_iov_iter *iter)
{
	while (iter->skip >= iter->iov->iov_len) {
		iter->skip -= iter->iov->iov_len;
		iter->iov++;
	}
}

/* The longest contiguous part of the next @len bytes. */
static struct iovec next_part(struct tcp_iov_iter *iter, uint32_t len)
{
	struct iovec part;

	skip_empty_iovecs(iter);
	part.iov_base = (char *)iter->iov->iov_base + iter->skip;
	part.iov_len = iter->iov->iov_len - iter->skip;
	if (part.iov_len > len)
		part.iov_len = len;
	iter->skip += part.iov_len;
	return part;
}

int tcp_iov_iter_map(struct tcp_iov_iter *iter, struct iovec *out, int room, uint32_t *len)
{
	int n = 0;

	while (*len && n < room) {
		out[n] = next_part(iter, *len);
		*len -= (uint32_t)out[n++].iov_len;
	}
	return n;
}

void tcp_iov_iter_copy_in(struct tcp_iov_iter *iter, const char *from, uint32_t len)
{
	struct iovec part;

	while (len) {
		part = next_part(iter, len);
		memcpy(part.iov_base, from, part.iov_len);
		from += part.iov_len;
		len -= (uint32_t)part.iov_len;
	}
}

uint32_t tcp_iov_iter_crc(struct tcp_iov_iter iter, uint32_t len)
{
	uint32_t crc = 0;
	struct iovec part;

	while (len) {
		part = next_part(&iter, len);
		crc = nvme_tcp_crc(crc, part.iov_base, part.iov_len);
		len -= (uint32_t)part.iov_len;
	}
	return crc;
}
