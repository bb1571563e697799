/* member_record.c - each member's record in the state file; only that member writes it.
 *
 *   ┌ checksum, 4 │ stage, 4 │ incarnation, 8 │ acked, 8 │ lock domain, 8 │ joiners seen, 8 │ unused, 24 ┐
 *
 * Records are not synced: a record matters only while its writer may live. An incarnation has a
 * counter in its upper 32 bits and a random number in its lower: two processes that both think they
 * are node 1 write different records, and both see which is later. */
#include "store/member_record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/uuid.h"
#include "proto/nvme.h"
#include "store/copies.h"

struct raw_member_record {
	__le32 crc; /* of all that follows: a half written record is not valid */
	__le32 stage;
	__le64 incarnation, acked, lock_domain, joiners_seen;
	__u8 unused[24];
};
static_assert(sizeof(struct raw_member_record) == 64, "a member's record");
static_assert(STORE_MEMBERS_AT + WEFT_STORE_NODES_MAX * 64 <= STORE_COPIES_AT, "they fit");

enum { CRC_FROM = offsetof(struct raw_member_record, stage), INCARNATION_COUNT_MAX = INT32_MAX };

static uint32_t record_crc(const struct raw_member_record *record)
{
	return crc32_iscsi((unsigned char *)record + CRC_FROM, sizeof(*record) - CRC_FROM, ~0u);
}

static struct store_member_record decode_record(const struct raw_member_record *record)
{
	if (le32_to_cpu(record->crc) != record_crc(record) ||
	    le32_to_cpu(record->stage) > STORE_LEFT)
		return (struct store_member_record){ 0 };
	return (struct store_member_record){
		.stage = le32_to_cpu(record->stage),
		.incarnation = le64_to_cpu(record->incarnation),
		.acked = le64_to_cpu(record->acked),
		.lock_domain = le64_to_cpu(record->lock_domain),
		.joiners_seen = le64_to_cpu(record->joiners_seen),
	};
}

int store_member_records_read(int fd, struct store_member_records *member_records)
{
	struct raw_member_record raw[WEFT_STORE_NODES_MAX];
	ssize_t n = pread(fd, raw, sizeof(raw), STORE_MEMBERS_AT);

	if (n < 0)
		return -errno;
	memset((char *)raw + n, 0xff, sizeof(raw) - (size_t)n); /* no valid checksum */
	for (unsigned i = 0; i < WEFT_STORE_NODES_MAX; i++)
		member_records->at[i + 1] = decode_record(&raw[i]);
	return 0;
}

int store_member_record_write(int fd, unsigned node, const struct store_member_record *record)
{
	struct raw_member_record raw = {
		.stage = cpu_to_le32((uint32_t)record->stage),
		.incarnation = cpu_to_le64(record->incarnation),
		.acked = cpu_to_le64(record->acked),
		.lock_domain = cpu_to_le64(record->lock_domain),
		.joiners_seen = cpu_to_le64(record->joiners_seen),
	};
	off_t at = STORE_MEMBERS_AT + (off_t)(node - 1) * (off_t)sizeof(raw);

	assert(node && node <= WEFT_STORE_NODES_MAX);
	assert(record->stage <= STORE_LEFT);
	raw.crc = cpu_to_le32(record_crc(&raw));
	errno = EIO;
	return pwrite(fd, &raw, sizeof(raw), at) == sizeof(raw) ? 0 : -errno;
}

uint64_t store_joiners_sum(const struct store_member_records *member_records, unsigned self)
{
	uint64_t asked = 0;

	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (node != self && member_records->at[node].stage == STORE_JOINING)
			asked += member_records->at[node].incarnation;
	return asked;
}

uint64_t store_next_incarnation(const struct store_member_record *record)
{
	uint64_t count = (record->incarnation >> 32) + 1;
	uint32_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)getpid();
	return (count <= INCARNATION_COUNT_MAX ? count : 1) << 32 | random;
}

/* --- the lock domain -------------------------------------------------------------------------- */

/* An unknown boot id is like no other. */
static void read_boot_id(char *id, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(id, (int)size, file))
		snprintf(id, size, "%d", getpid());
	if (file)
		fclose(file);
}

uint64_t store_lock_domain(int fd)
{
	char boot[64], text[128];
	struct stat st = { 0 };
	uint8_t hash[32];
	__le64 where;

	read_boot_id(boot, sizeof(boot));
	fstat(fd, &st);
	snprintf(text, sizeof(text), "%s\n%llu", boot, (unsigned long long)st.st_dev);
	weft_stable_hash("locks", text, true, hash);
	memcpy(&where, hash, sizeof(where));
	return le64_to_cpu(where) | 1;
}

/* The size first: bytes behind the known end would not be read. */
void store_drop_page_cache(int fd)
{
	struct statx now;

	statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &now);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}
