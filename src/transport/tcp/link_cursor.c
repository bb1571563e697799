/* link_cursor.c - a place in a command's scattered memory, moving forward only. */
#include <string.h>

#include "transport/tcp/link.h"

/* Onto the next byte there is; the memory holds at least one more. */
static void settle(struct link_cursor *cursor)
{
	while (cursor->skip >= cursor->iov->iov_len) {
		cursor->skip -= cursor->iov->iov_len;
		cursor->iov++;
	}
}

/* The longest contiguous part of the next @len bytes. */
static struct iovec next_part(struct link_cursor *cursor, uint32_t len)
{
	struct iovec part;

	settle(cursor);
	part.iov_base = (char *)cursor->iov->iov_base + cursor->skip;
	part.iov_len = cursor->iov->iov_len - cursor->skip;
	if (part.iov_len > len)
		part.iov_len = len;
	cursor->skip += part.iov_len;
	return part;
}

int link_cursor_map(struct link_cursor *cursor, struct iovec *out, int room, uint32_t *len)
{
	int n = 0;

	while (*len && n < room) {
		out[n] = next_part(cursor, *len);
		*len -= (uint32_t)out[n++].iov_len;
	}
	return n;
}

void link_cursor_copy_in(struct link_cursor *cursor, const char *from, uint32_t len)
{
	struct iovec part;

	while (len) {
		part = next_part(cursor, len);
		memcpy(part.iov_base, from, part.iov_len);
		from += part.iov_len;
		len -= (uint32_t)part.iov_len;
	}
}

uint32_t link_cursor_crc(struct link_cursor cursor, uint32_t len)
{
	uint32_t crc = 0;
	struct iovec part;

	while (len) {
		part = next_part(&cursor, len);
		crc = nvme_tcp_crc(crc, part.iov_base, part.iov_len);
		len -= (uint32_t)part.iov_len;
	}
	return crc;
}
