/* member_record.h - member records: what every member writes about itself into the state file. */
#ifndef WEFT_STORE_MEMBER_RECORD_H
#define WEFT_STORE_MEMBER_RECORD_H

#include "store/store.h"

enum store_member_stage {
	STORE_SILENT,  /* written by an older Weft, without a stage */
	STORE_JOINING, /* probes whether locks are shared; not a member yet */
	STORE_MEMBER,
	STORE_LEFT, /* it left, or was found dead */
};

struct store_member_record {
	uint64_t stage;
	uint64_t incarnation; /* which process of those that had this node number; they ascend */
	uint64_t acked;
	uint64_t lock_domain;  /* store_lock_domain() of its writer; 0: not known */
	uint64_t joiners_seen; /* store_joiners_sum() as it saw it last */
};

/* By node; incarnation 0: there is no valid record. */
struct store_member_records {
	struct store_member_record at[WEFT_STORE_NODES_MAX + 1];
};

int store_member_records_read(int fd, struct store_member_records *member_records);
int store_member_record_write(int fd, unsigned node, const struct store_member_record *record);
/* A sum that changes whenever another process joins. */
uint64_t store_joiners_sum(const struct store_member_records *member_records, unsigned self);
/* An incarnation behind that of @record, which nobody else has. */
uint64_t store_next_incarnation(const struct store_member_record *record);

/* The same for two descriptors only if one kernel keeps their locks in one place: same boot, same
 * mounted file system. */
uint64_t store_lock_domain(int fd);
/* Our page cache, and the size, may be older than what another machine wrote. */
void store_drop_page_cache(int fd);

#endif
