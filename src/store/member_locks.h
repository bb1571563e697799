/* member_locks.h - member locks: which process has the state file open as which node. */
#ifndef WEFT_STORE_MEMBER_LOCKS_H
#define WEFT_STORE_MEMBER_LOCKS_H

#include "store/internal.h"

/* The lock of the whole store: exclusive to change it, shared to read it. -EAGAIN: another process
 * has it. */
int store_file_lock(int fd, bool exclusive);
void store_file_unlock(int fd);

/* Takes @node's lock until @fd is closed; with one node, all locks. -EBUSY: another process has
 * it. */
int store_member_lock(int fd, unsigned node, unsigned nodes);
/* Do we still hold our lock? Tests it through another open file description (or -1), and locks
 * again. -ENOLCK: we do not. */
int store_member_check_lock(int fd, int lock_probe_fd, unsigned node, unsigned nodes);
void store_member_unlock(int fd);
/* Does another process hold @node's lock? */
int store_member_is_locked(int fd, unsigned node);
/* Fills in which of nodes 1 … @nodes live, without @self; incarnation 0: its record cannot be read
 * now. */
int store_members_scan(int fd, unsigned self, unsigned nodes, struct store_member *members);
/* Locks the value of @topic until @fd is closed. -ENOTUNIQ: another member has locked another
 * value. */
int store_member_agree(int fd, unsigned topic, uint64_t as);
void store_member_agree_end(int fd, unsigned topic);

#endif
