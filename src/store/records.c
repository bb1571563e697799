/* records.c - all records of one revision, and the same as bytes.
 *
 *   ┌ key length, 2 │ 0, 2 │ value length, 4 │ version, 8 │ key │ value ┐ … one after the other
 *
 * Numbers are little-endian. Invariant: keys ascend, in the list and in the bytes. */
#include "store/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/nvme.h"

struct entry_head {
	__le16 key_len, zero;
	__le32 len;
	__le64 version;
};
static_assert(sizeof(struct entry_head) == 16, "head of a record");

static void freep(struct store_records **records)
{
	if (*records)
		store_records_free(*records);
}

struct store_records *store_records_new(uint64_t revision, uint64_t session, uint32_t nodes)
{
	struct store_records *records = malloc(sizeof(*records));

	if (!records)
		return NULL;
	weft_list_init(&records->list);
	records->revision = revision;
	records->session = session;
	records->nodes = nodes;
	return records;
}

void store_records_free(struct store_records *records)
{
	struct weft_record *record, *tmp;

	weft_list_for_each_safe(record, tmp, &records->list, link)
		free(record);
	free(records);
}

const struct weft_record *store_records_find(const struct store_records *records, const char *key)
{
	const struct weft_record *record;

	weft_list_for_each(record, &records->list, link)
		if (!strcmp(record->key, key))
			return record;
	return NULL;
}

const struct weft_record *store_records_behind(const struct store_records *records, const char *key)
{
	const struct weft_record *record;

	weft_list_for_each(record, &records->list, link)
		if (strcmp(record->key, key) > 0)
			return record;
	return NULL;
}

/* --- making ----------------------------------------------------------------------------------- */

/* Value and key lie behind the record itself. */
static struct weft_record *record_new(const char *key, size_t key_len, const void *value,
				      uint32_t len, uint64_t version)
{
	struct weft_record *record = malloc(sizeof(*record) + len + key_len + 1);
	char *behind = (char *)(record + 1);

	if (!record)
		return NULL;
	memcpy(behind, value, len);
	memcpy(behind + len, key, key_len);
	behind[len + key_len] = '\0';
	record->version = version;
	record->len = len;
	record->value = behind;
	record->key = behind + len;
	return record;
}

static void insert(struct store_records *records, struct weft_record *record)
{
	struct weft_record *at;

	weft_list_for_each(at, &records->list, link)
		if (strcmp(at->key, record->key) > 0)
			break;
	weft_list_push(&at->link, &record->link); /* in front of it, or last */
}

/* Behind all others, where it belongs. */
static int append(struct store_records *records, const char *key, size_t key_len, const void *value,
		  uint32_t len, uint64_t version)
{
	struct weft_record *record = record_new(key, key_len, value, len, version);

	if (!record)
		return -ENOMEM;
	weft_list_push(&records->list, &record->link);
	return 0;
}

static const struct weft_store_write *find_write(const struct weft_txn *txn, const char *key)
{
	for (unsigned i = 0; i < txn->nwrites; i++)
		if (!strcmp(txn->writes[i].key, key))
			return &txn->writes[i];
	return NULL;
}

static int check_versions(const struct store_records *from, const struct weft_txn *txn)
{
	for (unsigned i = 0; i < txn->nwrites; i++) {
		const struct weft_record *record = store_records_find(from, txn->writes[i].key);

		if ((record ? record->version : 0) != txn->writes[i].version)
			return -ESTALE;
	}
	return 0;
}

static int write_one(struct store_records *next, const struct weft_store_write *w)
{
	struct weft_record *record;

	if (!w->value)
		return 0;
	record = record_new(w->key, strlen(w->key), w->value, w->len, next->revision);
	if (!record)
		return -ENOMEM;
	insert(next, record);
	return 0;
}

static int fill_next(struct store_records *next, const struct store_records *from,
		     const struct weft_txn *txn)
{
	const struct weft_record *record;
	int rc = 0;

	weft_list_for_each(record, &from->list, link)
		if (!rc && !find_write(txn, record->key))
			rc = append(next, record->key, strlen(record->key), record->value,
				    record->len, record->version);
	for (unsigned i = 0; i < txn->nwrites && !rc; i++)
		rc = write_one(next, &txn->writes[i]);
	return rc;
}

struct store_records *store_records_with(const struct store_records *from, uint64_t revision,
					 const struct weft_txn *txn, int *rc)
{
	_cleanup_(freep) struct store_records *next = NULL;

	*rc = check_versions(from, txn);
	if (*rc < 0)
		return NULL;
	next = store_records_new(revision, from->session, from->nodes);
	*rc = next ? fill_next(next, from, txn) : -ENOMEM;
	return *rc < 0 ? NULL : take_ptr(&next);
}

/* --- as bytes --------------------------------------------------------------------------------- */

size_t store_records_size(const struct store_records *records)
{
	const struct weft_record *record;
	size_t size = 0;

	weft_list_for_each(record, &records->list, link)
		size += sizeof(struct entry_head) + strlen(record->key) + record->len;
	return size;
}

void store_records_encode(const struct store_records *records, void *bytes)
{
	const struct weft_record *record;
	char *at = bytes;

	weft_list_for_each(record, &records->list, link) {
		size_t key_len = strlen(record->key);
		struct entry_head head = {
			.key_len = cpu_to_le16((uint16_t)key_len),
			.len = cpu_to_le32(record->len),
			.version = cpu_to_le64(record->version),
		};

		at = mempcpy(at, &head, sizeof(head));
		at = mempcpy(at, record->key, key_len);
		at = mempcpy(at, record->value, record->len);
	}
}

/* Behind the last one: so no key is there twice, and reading takes no longer than there are bytes. */
static bool ascends(const struct store_records *records, const char *key, size_t key_len)
{
	const struct weft_record *last = container_of(records->list.prev, struct weft_record, link);

	return weft_list_empty(&records->list) || strncmp(key, last->key, key_len) > 0;
}

/* The bytes that it takes, or -errno. */
static ssize_t decode_one(struct store_records *records, const char *at, size_t left)
{
	struct entry_head head;
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
	if (!version || version > records->revision || !ascends(records, at, key_len))
		return -EINVAL;
	rc = append(records, at, key_len, at + key_len, (uint32_t)len, version);
	return rc < 0 ? rc : (ssize_t)(sizeof(head) + key_len + len);
}

int store_records_decode(struct store_records *records, const void *bytes, size_t size)
{
	const char *at = bytes, *end = at + size;

	while (at < end) {
		ssize_t taken = decode_one(records, at, (size_t)(end - at));

		if (taken < 0)
			return (int)taken;
		at += taken;
	}
	return 0;
}
