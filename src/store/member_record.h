/* member_record.h - what every member says of itself in the file. */
#ifndef WEFT_STORE_MEMBER_RECORD_H
#define WEFT_STORE_MEMBER_RECORD_H

#include "store/store.h"

enum store_member_stage {
	STORE_SILENT,  /* an older Weft wrote it, and says nothing of this */
	STORE_JOINING, /* it asks whether all who live show here, and is no member yet */
	STORE_MEMBER,
	STORE_LEFT, /* it went by itself, or was found to be gone */
};

struct store_member_record {
	uint64_t stage;
	uint64_t incarnation; /* whose it is, of those that had this node's number; they ascend */
	uint64_t acked;
	uint64_t lock_domain; /* where its writer's locks show: store_lock_domain(); 0: it tells nobody */
	uint64_t joiners_seen; /* store_joiners_sum(), as it saw it last */
};

/* By node; incarnation 0: there is no line that is whole. */
struct store_member_records {
	struct store_member_record at[WEFT_STORE_NODES_MAX + 1];
};

int store_member_records_read(int fd, struct store_member_records *lines);
int store_member_record_write(int fd, unsigned node, const struct store_member_record *line);
/* Something else whenever somebody else joins. */
uint64_t store_joiners_sum(const struct store_member_records *lines, unsigned self);
/* An incarnation behind @line's, which nobody else has. */
uint64_t store_next_incarnation(const struct store_member_record *line);

/* The same for two descriptors only if one kernel keeps their locks in one place: the same boot, the
 * same mounted file system. */
uint64_t store_lock_domain(int fd);
/* Pages, and the size, may be older here than what another machine wrote. */
void store_drop_page_cache(int fd);

#endif
