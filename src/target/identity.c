/* identity.c - serial numbers and UUIDs that are the same at every start and differ between
 * machines: two targets with the default NQN must never look like two paths to one disk. Members of
 * a cluster are two paths to one disk, and have the same ones. */
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "target/internal.h"

void tgt_identity_serial(const char *nqn, bool common, char serial[21])
{
	uint8_t hash[32];

	weft_stable_hash("serial", nqn, common, hash);
	for (int i = 0; i < 10; i++)
		snprintf(serial + 2 * i, 3, "%02x", hash[i]);
}

void tgt_identity_uuid(const char *nqn, bool common, uint32_t nsid, const char *backend,
		       uint8_t uuid[16])
{
	char text[WEFT_NQN_MAX + 1100];

	/* A file keeps its identity when it grows: the SPEC up to its keys. Its path may differ
	 * from machine to machine. */
	snprintf(text, sizeof(text), "%s\n%u\n%.*s", nqn, nsid,
		 common ? 0 : (int)strcspn(backend, ","), backend);
	weft_stable_uuid("namespace", text, common, uuid);
}
