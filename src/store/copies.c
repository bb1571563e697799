/* copies.c - the two copies (A/B) of the records in the state file: one is whole and durable,
 * whatever happens to power.
 *
 *   0          4 KiB           64 KiB                16 MiB on
 *   │ magic    │ member records │ copy A: odd        │ copy B: even        │
 *                             ┌ head: magic, checksum, nodes, revision, session, length │ records ┐
 *
 * A revision overwrites the copy that does not hold the revision before it, and is synced. A torn
 * write damages only the new copy, and its checksum shows it. The file is sparse.
 *
 * A writer killed before its sync may leave a revision that processes can read and the disk does
 * not have. So a reader syncs a new revision before it uses it.
 *
 * A revision whose write or sync has failed is wiped, durably. If that fails, too, it is in doubt: a
 * disk may have all of it. The member that wrote it says so, and commits nothing before it has taken
 * that revision in, or wiped it (cycle.c). Others that can read it take it in.
 *
 * Invariant: at any moment one copy is whole and durable. */
#include "store/copies.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/nvme.h"

static const char file_magic[16] = "Weft state 1\n";
static const char magic[8] = "weftslot";

struct copy_header {
	char magic[8];
	__le32 crc; /* of all that follows */
	__le32 nodes;
	__le64 revision, session, length;
};
static_assert(sizeof(struct copy_header) == 40, "header of a copy");

enum { CRC_FROM = offsetof(struct copy_header, nodes) };

/* A revision each microsecond would last for years: a higher number is damage. */
static const uint64_t revision_max = 1ull << 48;

static const off_t copies_end = STORE_COPIES_AT + 2 * (off_t)STORE_COPY_BYTES;

static off_t copy_offset(uint64_t revision)
{
	assert(revision); /* 0: nothing was written yet */
	return STORE_COPIES_AT + (revision % 2 ? 0 : STORE_COPY_BYTES);
}

static uint32_t copy_crc(const void *copy, size_t size)
{
	return crc32_iscsi((unsigned char *)copy + CRC_FROM, (int)(size - CRC_FROM), ~0u);
}

/* --- read and write all bytes ----------------------------------------------------------------- */

/* Bytes beyond the end of the file read as zeroes. */
static int read_all(int fd, void *buf, size_t size, off_t at)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(fd, (char *)buf + have, size - have, at + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		have += (size_t)n;
	}
	memset((char *)buf + have, 0, size - have);
	return 0;
}

/* *@done: bytes that were written, also on -errno. */
static int write_counted(int fd, const void *buf, size_t size, off_t at, size_t *done)
{
	assert(size <= STORE_COPY_BYTES && at + (off_t)size <= copies_end);
	for (*done = 0; *done < size;) {
		ssize_t n = pwrite(fd, (const char *)buf + *done, size - *done, at + (off_t)*done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		*done += (size_t)n;
	}
	return 0;
}

static int write_all(int fd, const void *buf, size_t size, off_t at)
{
	size_t done;

	return write_counted(fd, buf, size, at, &done);
}

int store_copies_init(int fd)
{
	char has[sizeof(file_magic)], zeroes[sizeof(file_magic)] = { 0 };
	int rc = read_all(fd, has, sizeof(has), 0);

	if (rc < 0 || !memcmp(has, file_magic, sizeof(file_magic)))
		return rc;
	if (lseek(fd, 0, SEEK_END) > (off_t)sizeof(file_magic) ||
	    (memcmp(has, zeroes, sizeof(has)) && memcmp(has, file_magic, strlen(has))))
		return -EMEDIUMTYPE;
	return write_all(fd, file_magic, sizeof(file_magic), 0);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool has_copy_magic(const struct copy_header *head)
{
	return !memcmp(head->magic, magic, sizeof(magic));
}

static bool is_empty_header(const struct copy_header *head)
{
	static const struct copy_header none;

	return !memcmp(head, &none, sizeof(none));
}

static int decode_copy(const char *copy, size_t size, struct store_records **out)
{
	const struct copy_header *head = (const struct copy_header *)copy;
	struct store_records *records;
	int rc;

	records = store_records_new(le64_to_cpu(head->revision), le64_to_cpu(head->session),
				    le32_to_cpu(head->nodes));
	if (!records)
		return -ENOMEM;
	rc = store_records_decode(records, copy + sizeof(*head), size - sizeof(*head));
	if (rc < 0)
		store_records_free(records);
	else
		*out = records;
	return rc;
}

/* Reads the whole copy that begins with @head. -EINVAL: it is not whole. */
static int read_whole_copy(int fd, const struct copy_header *head, char **out, size_t *size)
{
	uint64_t length = le64_to_cpu(head->length);
	_cleanup_(weft_freep) char *copy = NULL;
	int rc;

	if (!has_copy_magic(head) || length > STORE_COPY_BYTES - sizeof(*head) ||
	    le64_to_cpu(head->revision) > revision_max)
		return -EINVAL;
	*size = sizeof(*head) + length;
	copy = malloc(*size);
	if (!copy)
		return -ENOMEM;
	rc = read_all(fd, copy, *size, copy_offset(le64_to_cpu(head->revision)));
	if (rc < 0)
		return rc;
	if (memcmp(copy, head, sizeof(*head)) || copy_crc(copy, *size) != le32_to_cpu(head->crc))
		return -EINVAL;
	*out = take_ptr(&copy);
	return 0;
}

static int read_copy(int fd, const struct copy_header *head, struct store_records **out)
{
	_cleanup_(weft_freep) char *copy = NULL;
	size_t size;
	int rc = read_whole_copy(fd, head, &copy, &size);

	return rc < 0 ? rc : decode_copy(copy, size, out);
}

/* A revision of the wrong parity does not belong to this copy. */
static uint64_t newer_revision(const struct copy_header *head, unsigned parity, uint64_t known)
{
	uint64_t revision = le64_to_cpu(head->revision);

	return has_copy_magic(head) && revision > known && revision % 2 == parity ? revision : 0;
}

static int load_newest_copy(int fd, const struct copy_header heads[2], uint64_t known,
			    struct store_records **out)
{
	uint64_t odd = newer_revision(&heads[0], 1, known),
		 even = newer_revision(&heads[1], 0, known);
	const struct copy_header *first = odd > even ? &heads[0] : &heads[1];
	const struct copy_header *second = odd > even ? &heads[1] : &heads[0];
	int rc = odd || even ? read_copy(fd, first, out) : -EINVAL;

	if (rc == -EINVAL && odd && even)
		rc = read_copy(fd, second, out);
	return rc;
}

static int read_copy_headers(int fd, struct copy_header heads[2])
{
	int rc = read_all(fd, &heads[0], sizeof(heads[0]), copy_offset(1));

	return rc < 0 ? rc : read_all(fd, &heads[1], sizeof(heads[1]), copy_offset(2));
}

int store_copies_have(int fd, uint64_t revision, bool *have)
{
	_cleanup_(weft_freep) char *copy = NULL;
	struct copy_header head;
	char is[sizeof(file_magic)];
	size_t size;
	int rc = read_all(fd, is, sizeof(is), 0);

	if (!rc)
		rc = read_all(fd, &head, sizeof(head), copy_offset(revision));
	*have = false;
	if (rc < 0 || memcmp(is, file_magic, sizeof(file_magic)) ||
	    le64_to_cpu(head.revision) != revision)
		return rc;
	rc = read_whole_copy(fd, &head, &copy, &size);
	*have = !rc;
	return rc == -EINVAL ? 0 : rc;
}

/* The first revision was never whole. If copy A has a later one, copy B was written, and lost. */
static bool is_new_file(const struct copy_header heads[2])
{
	return is_empty_header(&heads[1]) && newer_revision(&heads[0], 1, 1) == 0;
}

int store_copies_load(int fd, uint64_t known, struct store_records **out)
{
	struct copy_header heads[2];
	int rc;

	*out = NULL;
	rc = read_copy_headers(fd, heads);
	if (!rc)
		rc = load_newest_copy(fd, heads, known, out);
	if (rc == -EINVAL) /* nothing newer is whole */
		return known || is_new_file(heads) ? 0 : -EUCLEAN;
	if (rc < 0)
		return rc;
	if (fdatasync(fd) < 0) {
		rc = -errno;
		store_records_free(take_ptr(out));
	}
	return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

int store_copies_wipe(int fd, uint64_t revision)
{
	static const struct copy_header none;
	int rc = write_all(fd, &none, sizeof(none), copy_offset(revision));

	return rc == 0 && fdatasync(fd) < 0 ? -errno : rc;
}

bool store_copies_fit(const struct store_records *records)
{
	return sizeof(struct copy_header) + store_records_size(records) <= STORE_COPY_BYTES;
}

int store_copies_save(int fd, const struct store_records *records, bool *in_doubt)
{
	size_t length = store_records_size(records), size = sizeof(struct copy_header) + length;
	size_t written;
	_cleanup_(weft_freep) char *copy = NULL;
	struct copy_header *head;
	int rc;

	*in_doubt = false;
	if (!store_copies_fit(records))
		return -ENOSPC;
	copy = calloc(1, size);
	if (!copy)
		return -ENOMEM;
	head = (struct copy_header *)copy;
	memcpy(head->magic, magic, sizeof(magic));
	head->nodes = cpu_to_le32(records->nodes);
	head->revision = cpu_to_le64(records->revision);
	head->session = cpu_to_le64(records->session);
	head->length = cpu_to_le64(length);
	store_records_encode(records, copy + sizeof(*head));
	head->crc = cpu_to_le32(copy_crc(copy, size));
	rc = write_counted(fd, copy, size, copy_offset(records->revision), &written);
	if (!rc && fdatasync(fd) < 0)
		rc = -errno;
	if (rc < 0)
		*in_doubt = store_copies_wipe(fd, records->revision) < 0 && written;
	return rc;
}

int store_copies_rewrite(int fd, const struct store_records *records)
{
	int rc = write_all(fd, file_magic, sizeof(file_magic), 0);
	bool in_doubt; /* it was committed before */

	return rc < 0 ? rc : store_copies_save(fd, records, &in_doubt);
}
