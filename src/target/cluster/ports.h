/* ports.h - where a member of a cluster listens, as the store has it. */
#ifndef WEFT_TARGET_CLUSTER_PORTS_H
#define WEFT_TARGET_CLUSTER_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "target/internal.h"

enum {
	PORTS_MAX = 128, /* of a member; others are not told of more */
	PORTS_RECORD_MAX = 32 + PORTS_MAX * 96,
};

struct ports {
	unsigned count;
	struct tgt_port at[PORTS_MAX];
};

/* The bytes that it takes. */
size_t ports_encode(const struct ports *ports, uint64_t session, char bytes[PORTS_RECORD_MAX]);
/* Of another session, or @len 0: it has none. -EINVAL: these are not its bytes. */
int ports_decode(struct ports *ports, uint64_t session, const void *bytes, size_t len);

#endif
