/* members.c - who has the file open as which node, and what each has acknowledged.
 *
 * A member holds a lock on a byte far behind the data, of its open file description: the kernel
 * lets go of it when the process ends, however that comes. What it has acknowledged is a line in
 * the file that only it writes. That line is not synced: it counts only while its writer lives.
 *
 *   2^62: the store, shared to look, exclusive to change   2^62 + node: a member, exclusive
 *   2^62 + 2^61 + slot × 2^40: what all say of a slot (base/agree.h) */
#include "store/members.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>
#include <unistd.h>

#include "base/agree.h"
#include "base/ofd.h"
#include "proto/nvme.h"
#include "store/slots.h"

struct line {
	__le32 crc; /* of all that follows: a line read while it is written is not believed */
	__le32 zero;
	__le64 incarnation, acked;
	__u8 unused[40];
};
static_assert(sizeof(struct line) == 64, "a member's line");
static_assert(STORE_MEMBERS_AT + WEFT_STORE_NODES_MAX * 64 <= STORE_SLOT_AT, "they fit");

enum { CRC_FROM = offsetof(struct line, zero) };

static const off_t locks_at = (off_t)1 << 62;

int store_lock(int fd, bool exclusive)
{
	return weft_ofd_lock(fd, exclusive ? F_WRLCK : F_RDLCK, locks_at, 1);
}

void store_unlock(int fd)
{
	weft_ofd_lock(fd, F_UNLCK, locks_at, 1);
}

/* Does somebody else hold @node's? */
static int is_locked(int fd, unsigned node)
{
	return weft_ofd_held(fd, F_WRLCK, locks_at + node, 1, NULL);
}

static off_t line_at(unsigned node)
{
	return STORE_MEMBERS_AT + (off_t)(node - 1) * (off_t)sizeof(struct line);
}

static uint32_t line_crc(const struct line *line)
{
	return crc32_iscsi((unsigned char *)line + CRC_FROM, sizeof(*line) - CRC_FROM, ~0u);
}

/* false: there is none that is whole. */
static bool read_line(int fd, unsigned node, struct line *line)
{
	return pread(fd, line, sizeof(*line), line_at(node)) == sizeof(*line) &&
	       le32_to_cpu(line->crc) == line_crc(line);
}

int store_member_ack(int fd, unsigned node, uint64_t incarnation, uint64_t acked)
{
	struct line line = {
		.incarnation = cpu_to_le64(incarnation),
		.acked = cpu_to_le64(acked),
	};
	struct line there;

	line.crc = cpu_to_le32(line_crc(&line));
	if (read_line(fd, node, &there) && !memcmp(&there, &line, sizeof(line)))
		return 0;
	errno = EIO;
	return pwrite(fd, &line, sizeof(line), line_at(node)) == sizeof(line) ? 0 : -errno;
}

/* One that is alone looks for no others: there must be none, whatever they take this file for. */
int store_member_hold(int fd, unsigned node, unsigned nodes)
{
	int rc = nodes > 1 ? weft_ofd_lock(fd, F_WRLCK, locks_at + node, 1) :
			     weft_ofd_lock(fd, F_WRLCK, locks_at + 1, WEFT_STORE_NODES_MAX);

	return rc == -EAGAIN ? -EBUSY : rc;
}

int store_member_join(int fd, unsigned node, unsigned nodes, uint64_t *incarnation)
{
	struct line line;
	int rc = store_member_hold(fd, node, nodes);

	if (rc < 0)
		return rc;
	*incarnation = read_line(fd, node, &line) ? le64_to_cpu(line.incarnation) + 1 : 1;
	return store_member_ack(fd, node, *incarnation, 0);
}

static int look_at(int fd, unsigned node, struct store_member *member)
{
	struct line line;
	int locked = is_locked(fd, node);

	if (locked < 0)
		return locked;
	*member = (struct store_member){ .alive = locked };
	if (locked && read_line(fd, node, &line)) {
		member->incarnation = le64_to_cpu(line.incarnation);
		member->acked = le64_to_cpu(line.acked);
	}
	return 0;
}

int store_members_look(int fd, unsigned self, unsigned nodes, struct store_member *members)
{
	int rc = 0;

	for (unsigned node = 1; node <= nodes && !rc; node++)
		if (node != self)
			rc = look_at(fd, node, &members[node]);
	return rc;
}

/* --- what they say ---------------------------------------------------------------------------- */

enum { SAY_BITS = 40 };

static struct weft_agree slot_at(unsigned slot)
{
	return (struct weft_agree){ locks_at + locks_at / 2 + ((off_t)slot << SAY_BITS),
				    1ull << SAY_BITS };
}
static_assert((uint64_t)WEFT_STORE_SLOTS_MAX << SAY_BITS <= 1ull << 61, "slots do not meet");

int store_member_agree(int fd, unsigned slot, uint64_t as)
{
	const struct weft_agree at = slot_at(slot);
	uint64_t other;

	return weft_agree(fd, &at, as % at.count, &other);
}

void store_member_agree_end(int fd, unsigned slot)
{
	const struct weft_agree at = slot_at(slot);

	weft_agree_end(fd, &at);
}
