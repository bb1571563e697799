/* copies.h - records in a file, whole or not at all, whatever happens to power. */
#ifndef WEFT_STORE_COPIES_H
#define WEFT_STORE_COPIES_H

#include "store/records.h"

enum {
	STORE_MEMBERS_AT = 4096, /* a page for member_locks.c */
	STORE_COPIES_AT = 64 << 10,
	STORE_COPY_BYTES = 16 << 20, /* the most that all records may come to */
};

/* Gives an empty file its head. -EMEDIUMTYPE: it is a file of something else. */
int store_copies_init(int fd);
/* The newest revision in the file if it is not @known: *@records is it, otherwise NULL. What it
 * gives is durable. -EUCLEAN: both slots are damaged. */
int store_copies_load(int fd, uint64_t known, struct store_records **records);
bool store_copies_fit(const struct store_records *records);
/* On 0 it is durable. Of the revision before it nothing is touched. */
int store_copies_save(int fd, const struct store_records *records);
/* Does the file have this revision, whole, and is it one of ours still? */
int store_copies_have(int fd, uint64_t revision, bool *have);
/* As saving, and its head, into a file that has lost them. */
int store_copies_rewrite(int fd, const struct store_records *records);

#endif
