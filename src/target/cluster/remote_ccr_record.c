/* remote_ccr_record.c - the record of a remote Cross-Controller Reset in the store: encode and
 * decode. */
#include <errno.h>
#include <string.h>

#include "target/cluster/remote_ccr.h"

enum { FORMAT = 1 };

struct record {
	__u8 format, state, asker, ciu;
	__le16 cntlid;
	__u8 zero[2];
	__le64 cirn, session;
	__u8 hostid[16];
	char hostnqn[WEFT_NQN_MAX + 1];
};
static_assert(sizeof(struct record) == REMOTE_CCR_RECORD, "a reset");

void remote_ccr_encode(const struct remote_ccr_record *reset, uint8_t bytes[REMOTE_CCR_RECORD])
{
	struct record record = {
		.format = FORMAT,
		.state = reset->state,
		.asker = reset->asker,
		.ciu = reset->ciu,
		.cntlid = cpu_to_le16(reset->cntlid),
		.cirn = cpu_to_le64(reset->cirn),
		.session = cpu_to_le64(reset->session),
	};

	memcpy(record.hostid, reset->hostid, sizeof(record.hostid));
	strcpy(record.hostnqn, reset->hostnqn);
	memcpy(bytes, &record, sizeof(record));
}

int remote_ccr_decode(struct remote_ccr_record *reset, const void *bytes, size_t len)
{
	struct record record;

	if (len != sizeof(record))
		return -EINVAL;
	memcpy(&record, bytes, sizeof(record));
	if (record.format != FORMAT || record.state < REMOTE_CCR_REQUESTED ||
	    record.state > REMOTE_CCR_DENIED || !record.asker || record.asker > WEFT_NODES_MAX ||
	    !memchr(record.hostnqn, '\0', sizeof(record.hostnqn)))
		return -EINVAL;
	*reset = (struct remote_ccr_record){
		.state = record.state,
		.asker = record.asker,
		.cntlid = le16_to_cpu(record.cntlid),
		.ciu = record.ciu,
		.cirn = le64_to_cpu(record.cirn),
		.session = le64_to_cpu(record.session),
	};
	memcpy(reset->hostid, record.hostid, sizeof(reset->hostid));
	strcpy(reset->hostnqn, record.hostnqn);
	return 0;
}
