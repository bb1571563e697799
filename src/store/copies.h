/* copies.h - the two copies (A/B) of the records in the state file. */
#ifndef WEFT_STORE_COPIES_H
#define WEFT_STORE_COPIES_H

#include "store/records.h"

enum {
	STORE_MEMBERS_AT = 4096, /* a page for member_record.c */
	STORE_COPIES_AT = 64 << 10,
	STORE_COPY_BYTES = 16 << 20, /* the most that all records may take */
};

/* Writes the magic of an empty file. -EMEDIUMTYPE: the file is not a state file. */
int store_copies_init(int fd);
/* Loads the newest revision if it is not @known: *@records is it, otherwise NULL. It is durable.
 * -EUCLEAN: both copies are damaged. */
int store_copies_load(int fd, uint64_t known, struct store_records **records);
bool store_copies_fit(const struct store_records *records);
/* On 0 it is durable. The copy with the revision before it is not touched. On -errno nobody will
 * load it, or it is @in_doubt: it may be on the disk, and could not be wiped. */
int store_copies_save(int fd, const struct store_records *records, bool *in_doubt);
/* Nobody will load what may be there of @revision: on 0 that is durable. */
int store_copies_wipe(int fd, uint64_t revision);
/* Does the file have this revision, whole, and still our magic? */
int store_copies_have(int fd, uint64_t revision, bool *have);
/* Saves, and writes the magic, into a file that has lost both. */
int store_copies_rewrite(int fd, const struct store_records *records);

#endif
