/* digest.h - a digest as it is on the wire. */
#ifndef WEFT_TESTS_PEER_DIGEST_H
#define WEFT_TESTS_PEER_DIGEST_H

#include <endian.h>
#include <string.h>

#include "proto/tcp.h"

static inline void seal(char *at, const void *bytes, size_t len)
{
	uint32_t crc = htole32(nvme_tcp_crc(0, bytes, len));

	memcpy(at, &crc, sizeof(crc));
}

#endif
