/* ports.h - the record of a member's listeners in the store. */
#ifndef WEFT_TARGET_CLUSTER_PORTS_H
#define WEFT_TARGET_CLUSTER_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "target/internal.h"

enum {
	PORTS_MAX = 128, /* of a member; more are not published */
	PORTS_RECORD_MAX = 32 + PORTS_MAX * 96,
};

struct ports {
	unsigned count;
	struct tgt_port at[PORTS_MAX];
};

/* Returns the size in bytes. */
size_t ports_encode(const struct ports *ports, uint64_t session, char bytes[PORTS_RECORD_MAX]);
/* Of another session, or @len 0: the member has none. -EINVAL: these are not its bytes. */
int ports_decode(struct ports *ports, uint64_t session, const void *bytes, size_t len);

#endif
