/* member_locks.h - who has the file open as which node, and holds its lock. */
#ifndef WEFT_STORE_MEMBER_LOCKS_H
#define WEFT_STORE_MEMBER_LOCKS_H

#include "store/internal.h"

/* The store itself: for one who changes it, or for several who look. -EAGAIN: not now. */
int store_file_lock(int fd, bool exclusive);
void store_file_unlock(int fd);

/* Holds @node's lock, as long as @fd is open; with one node, all of them. -EBUSY: somebody else
 * does. */
int store_member_lock(int fd, unsigned node, unsigned nodes);
/* Does the file system still say so? Another description of the file, or -1, is asked, and it is
 * locked anew. -ENOLCK: it does not. */
int store_member_check_lock(int fd, int lock_probe_fd, unsigned node, unsigned nodes);
void store_member_unlock(int fd);
/* Does somebody else hold @node's? */
int store_member_is_locked(int fd, unsigned node);
/* Fills in those of nodes 1 … @nodes, without @self, that live; incarnation 0: its line cannot be
 * read, now. */
int store_members_scan(int fd, unsigned self, unsigned nodes, struct store_member *members);
/* What @slot is for us, as long as @fd is open. -ENOTUNIQ: another says otherwise. */
int store_member_agree(int fd, unsigned topic, uint64_t as);
void store_member_agree_end(int fd, unsigned topic);

#endif
