/* records.h - all records of one revision; encode and decode them. */
#ifndef WEFT_STORE_RECORDS_H
#define WEFT_STORE_RECORDS_H

#include <stddef.h>

#include "store/store.h"

/* Never changed once it is published: a new revision is a new struct, which shares unchanged
 * records with the one before. So revisions that share records belong to one thread at a time. */
struct store_records {
	struct store_record **at; /* @count of them, by key */
	unsigned count, room;
	uint64_t revision, session;
	uint32_t nodes; /* of this session: how many may be members */
};

/* NULL: no memory. */
struct store_records *store_records_new(uint64_t revision, uint64_t session, uint32_t nodes);
void store_records_free(struct store_records *records);
const struct weft_store_record *store_records_find(const struct store_records *records,
						   const char *key);
const struct weft_store_record *store_records_next(const struct store_records *records,
						   const char *key);
/* @from after @txn, as @revision. NULL and @rc: a version differs (-ESTALE), or there is no
 * memory. */
struct store_records *store_records_apply(const struct store_records *from, uint64_t revision,
					  const struct weft_store_txn *txn, int *rc);

size_t store_records_size(const struct store_records *records); /* encoded */
void store_records_encode(const struct store_records *records, void *bytes);
/* Decodes @bytes into @records, which are empty. -EINVAL: store_records_encode() did not write
 * them. */
int store_records_decode(struct store_records *records, const void *bytes, size_t size);

#endif
