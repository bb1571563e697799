/* member_locks.c - which node numbers are taken: OFD locks on bytes far behind the data.
 *
 * The kernel drops a lock when its process ends, in whatever way. What a member has to say is in
 * its member record (member_record.h).
 *
 *   2^62: the store, shared to read, exclusive to change   2^62 + node: a member, exclusive
 *   2^62 + 2^61 + topic × 2^40: the value of a topic (lock/value_lock.h)
 *
 * A network file system can lose a lock whose holder lives (an expired lease, a server restart), so
 * a member tests its own lock in every cycle. */
#include "store/member_locks.h"

#include <assert.h>
#include <errno.h>

#include "lock/ofd.h"
#include "lock/value_lock.h"
#include "store/member_record.h"

static const off_t locks_at = (off_t)1 << 62;

int store_file_lock(int fd, bool exclusive)
{
	return weft_ofd_lock(fd, exclusive ? F_WRLCK : F_RDLCK, locks_at, 1);
}

void store_file_unlock(int fd)
{
	weft_ofd_lock(fd, F_UNLCK, locks_at, 1);
}

int store_member_is_locked(int fd, unsigned node)
{
	assert(node && node <= WEFT_STORE_NODES_MAX);
	return weft_ofd_test(fd, F_WRLCK, locks_at + node, 1, NULL);
}

/* With one node all locks are taken: no other process may use the file, as whichever node. */
int store_member_lock(int fd, unsigned node, unsigned nodes)
{
	int rc;

	assert(node && node <= nodes && nodes <= WEFT_STORE_NODES_MAX);
	rc = nodes > 1 ? weft_ofd_lock(fd, F_WRLCK, locks_at + node, 1) :
			 weft_ofd_lock(fd, F_WRLCK, locks_at + 1, WEFT_STORE_NODES_MAX);

	return rc == -EAGAIN ? -EBUSY : rc;
}

/* This kernel may answer for a server that has forgotten the lock: only locking asks the server. */
int store_member_check_lock(int fd, int lock_probe_fd, unsigned node, unsigned nodes)
{
	int held = lock_probe_fd < 0 ? 1 : store_member_is_locked(lock_probe_fd, node);
	int rc;

	if (held <= 0)
		return held < 0 ? held : -ENOLCK;
	rc = store_member_lock(fd, node, nodes);
	return rc == -EBUSY ? -ENOLCK : rc;
}

void store_member_unlock(int fd)
{
	weft_ofd_lock(fd, F_UNLCK, locks_at + 1, WEFT_STORE_NODES_MAX);
}

/* A joining process is not a member yet. */
static struct store_member member_from_record(bool locked, const struct store_member_record *record)
{
	if (!locked || record->stage == STORE_JOINING)
		return (struct store_member){ .alive = false };
	return (struct store_member){ true, record->incarnation, record->acked };
}

int store_members_scan(int fd, unsigned self, unsigned nodes, struct store_member *members)
{
	int locked[WEFT_STORE_NODES_MAX + 1];
	struct store_member_records member_records;
	int rc;

	assert(self && nodes <= WEFT_STORE_NODES_MAX);
	for (unsigned node = 1; node <= nodes; node++) {
		locked[node] = node == self ? 0 : store_member_is_locked(fd, node);
		if (locked[node] < 0)
			return locked[node];
	}
	rc = store_member_records_read(fd, &member_records);
	for (unsigned node = 1; node <= nodes && !rc; node++)
		members[node] = member_from_record(locked[node], &member_records.at[node]);
	return rc;
}

/* --- values of topics ------------------------------------------------------------------------- */

enum { TOPIC_BITS = 40 };

static struct weft_value_range topic_range(unsigned topic)
{
	assert(topic < WEFT_STORE_TOPICS_MAX);
	return (struct weft_value_range){ locks_at + locks_at / 2 + ((off_t)topic << TOPIC_BITS),
					  1ull << TOPIC_BITS };
}
static_assert((uint64_t)WEFT_STORE_TOPICS_MAX << TOPIC_BITS <= 1ull << 61,
	      "every topic has its range");

int store_member_agree(int fd, unsigned topic, uint64_t as)
{
	const struct weft_value_range at = topic_range(topic);
	uint64_t other;

	return weft_value_lock(fd, &at, as % at.count, &other);
}

void store_member_agree_end(int fd, unsigned topic)
{
	const struct weft_value_range at = topic_range(topic);

	weft_value_unlock(fd, &at);
}
