/* records.c - all records of one revision; encode and decode them.
 *
 *   ┌ key length, 2 │ 0, 2 │ value length, 4 │ version, 8 │ key │ value ┐ … one after the other
 *
 * Numbers are little-endian. Invariant: keys ascend, in memory and in the bytes. */
#include "store/records.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "proto/nvme.h"

struct store_record {
	struct weft_store_record body;
	unsigned refs; /* revisions that share it */
};

struct record_header {
	__le16 key_len, zero;
	__le32 len;
	__le64 version;
};
static_assert(sizeof(struct record_header) == 16, "head of a record");

static void store_records_freep(struct store_records **records)
{
	if (*records)
		store_records_free(*records);
}

struct store_records *store_records_new(uint64_t revision, uint64_t session, uint32_t nodes)
{
	struct store_records *records = calloc(1, sizeof(*records));

	if (!records)
		return NULL;
	records->revision = revision;
	records->session = session;
	records->nodes = nodes;
	return records;
}

static void record_put(struct store_record *record)
{
	if (!weft_count_down(record->refs))
		free(record);
}

void store_records_free(struct store_records *records)
{
	for (unsigned i = 0; i < records->count; i++)
		record_put(records->at[i]);
	free(records->at);
	free(records);
}

/* The index of the first record that is not before @key. */
static unsigned records_lower_bound(const struct store_records *records, const char *key)
{
	unsigned from = 0, to = records->count;

	while (from < to) {
		unsigned mid = from + (to - from) / 2;

		if (strcmp(records->at[mid]->body.key, key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool has_key_at(const struct store_records *records, unsigned place, const char *key)
{
	return place < records->count && !strcmp(records->at[place]->body.key, key);
}

const struct weft_store_record *store_records_find(const struct store_records *records,
						   const char *key)
{
	unsigned place = records_lower_bound(records, key);

	return has_key_at(records, place, key) ? &records->at[place]->body : NULL;
}

const struct weft_store_record *store_records_next(const struct store_records *records,
						   const char *key)
{
	unsigned place = records_lower_bound(records, key);

	place += has_key_at(records, place, key);
	return place < records->count ? &records->at[place]->body : NULL;
}

/* --- create and change ------------------------------------------------------------------------ */

/* Value and key lie behind the struct. */
static struct store_record *record_new(const char *key, size_t key_len, const void *value,
				       uint32_t len, uint64_t version)
{
	struct store_record *record = malloc(sizeof(*record) + len + key_len + 1);
	char *behind = (char *)(record + 1);

	if (!record)
		return NULL;
	memcpy(behind, value, len);
	memcpy(behind + len, key, key_len);
	behind[len + key_len] = '\0';
	record->refs = 1;
	record->body = (struct weft_store_record){
		.version = version, .len = len, .value = behind, .key = behind + len
	};
	return record;
}

static int records_make_room(struct store_records *records, unsigned needed)
{
	unsigned room = needed + needed / 2;
	struct store_record **at;

	if (needed <= records->room)
		return 0;
	at = reallocarray(records->at, room, sizeof(*at));
	if (!at)
		return -ENOMEM;
	records->at = at;
	records->room = room;
	return 0;
}

static int insert_record(struct store_records *records, const char *key, size_t key_len,
			 const void *value, uint32_t len, uint64_t version)
{
	struct store_record *record = record_new(key, key_len, value, len, version);
	unsigned place;

	if (!record || records_make_room(records, records->count + 1) < 0) {
		free(record);
		return -ENOMEM;
	}
	place = records_lower_bound(records, record->body.key);
	assert(!has_key_at(records, place, record->body.key));
	memmove(&records->at[place + 1], &records->at[place],
		(records->count - place) * sizeof(records->at[0]));
	records->at[place] = record;
	records->count++;
	return 0;
}

static void remove_record(struct store_records *records, const char *key)
{
	unsigned place = records_lower_bound(records, key);

	if (!has_key_at(records, place, key))
		return;
	record_put(records->at[place]);
	weft_count_down(records->count);
	memmove(&records->at[place], &records->at[place + 1],
		(records->count - place) * sizeof(records->at[0]));
}

static int check_versions(const struct store_records *from, const struct weft_store_txn *txn)
{
	for (unsigned i = 0; i < txn->nwrites; i++) {
		const struct weft_store_record *record = store_records_find(from,
									    txn->writes[i].key);

		if ((record ? record->version : 0) != txn->writes[i].version)
			return -ESTALE;
	}
	return 0;
}

static int share_records(struct store_records *next, const struct store_records *from)
{
	if (records_make_room(next, from->count) < 0)
		return -ENOMEM;
	assert(!next->count);
	for (; next->count < from->count; next->count++) {
		assert(from->at[next->count]->refs);
		next->at[next->count] = from->at[next->count];
		next->at[next->count]->refs++;
	}
	return 0;
}

static int apply_writes(struct store_records *next, const struct store_records *from,
			const struct weft_store_txn *txn)
{
	int rc = share_records(next, from);

	for (unsigned i = 0; i < txn->nwrites && !rc; i++) {
		const struct weft_store_write *w = &txn->writes[i];

		remove_record(next, w->key);
		if (w->value)
			rc = insert_record(next, w->key, strlen(w->key), w->value, w->len,
					   next->revision);
	}
	return rc;
}

struct store_records *store_records_apply(const struct store_records *from, uint64_t revision,
					  const struct weft_store_txn *txn, int *rc)
{
	_cleanup_(store_records_freep) struct store_records *next = NULL;

	/* The same: of an earlier transaction of this commit. */
	assert(revision == from->revision || revision == from->revision + 1);
	*rc = check_versions(from, txn);
	if (*rc < 0)
		return NULL;
	next = store_records_new(revision, from->session, from->nodes);
	*rc = next ? apply_writes(next, from, txn) : -ENOMEM;
	return *rc < 0 ? NULL : take_ptr(&next);
}

/* --- encode and decode ------------------------------------------------------------------------ */

size_t store_records_size(const struct store_records *records)
{
	size_t size = 0;

	for (unsigned i = 0; i < records->count; i++) {
		const struct weft_store_record *record = &records->at[i]->body;

		size += sizeof(struct record_header) + strlen(record->key) + record->len;
	}
	return size;
}

void store_records_encode(const struct store_records *records, void *bytes)
{
	char *at = bytes;

	for (unsigned i = 0; i < records->count; i++) {
		const struct weft_store_record *record = &records->at[i]->body;
		size_t key_len = strlen(record->key);
		struct record_header head = {
			.key_len = cpu_to_le16((uint16_t)key_len),
			.len = cpu_to_le32(record->len),
			.version = cpu_to_le64(record->version),
		};

		at = mempcpy(at, &head, sizeof(head));
		at = mempcpy(at, record->key, key_len);
		at = mempcpy(at, record->value, record->len);
	}
	assert((size_t)(at - (char *)bytes) == store_records_size(records));
}

/* Keys must ascend: so no key is there twice, and decoding takes linear time. */
static bool is_after_last(const struct store_records *records, const char *key, size_t key_len)
{
	if (!records->count)
		return true;
	return strncmp(key, records->at[records->count - 1]->body.key, key_len) > 0;
}

/* Returns its size in bytes, or -errno. */
static ssize_t decode_next_record(struct store_records *records, const char *at, size_t left)
{
	struct record_header head;
	size_t key_len, len;
	uint64_t version;
	int rc;

	if (left < sizeof(head))
		return -EINVAL;
	memcpy(&head, at, sizeof(head));
	key_len = le16_to_cpu(head.key_len);
	len = le32_to_cpu(head.len);
	version = le64_to_cpu(head.version);
	if (!key_len || key_len > WEFT_STORE_KEY_MAX || len > WEFT_STORE_VALUE_MAX ||
	    key_len + len > left - sizeof(head) || memchr(at + sizeof(head), '\0', key_len))
		return -EINVAL;
	at += sizeof(head);
	if (!version || version > records->revision || !is_after_last(records, at, key_len))
		return -EINVAL;
	rc = insert_record(records, at, key_len, at + key_len, (uint32_t)len, version);
	return rc < 0 ? rc : (ssize_t)(sizeof(head) + key_len + len);
}

int store_records_decode(struct store_records *records, const void *bytes, size_t size)
{
	const char *at = bytes, *end = at + size;

	assert(!records->count);
	while (at < end) {
		ssize_t taken = decode_next_record(records, at, (size_t)(end - at));

		if (taken < 0)
			return (int)taken;
		at += taken;
	}
	return 0;
}
