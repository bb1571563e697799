/* members.h - who has the file open as which node, and what each has acknowledged. */
#ifndef WEFT_STORE_MEMBERS_H
#define WEFT_STORE_MEMBERS_H

#include "store/internal.h"

/* The store itself: for one who changes it, or for several who look. -EAGAIN: not now. */
int store_lock(int fd, bool exclusive);
void store_unlock(int fd);

/* Holds @node's lock, as long as @fd is open. -EBUSY: somebody else does. */
int store_member_hold(int fd, unsigned node, unsigned nodes);
/* Becomes @node until @fd is closed; with one node, all of them. -EBUSY: somebody is. */
int store_member_join(int fd, unsigned node, unsigned nodes, uint64_t *incarnation);
/* Its line is that, whatever became of it meanwhile. */
int store_member_ack(int fd, unsigned node, uint64_t incarnation, uint64_t acked);
/* Fills in those of nodes 1 … @nodes, without @self, that live; incarnation 0: its line cannot be
 * read, now. */
int store_members_look(int fd, unsigned self, unsigned nodes, struct store_member *members);
/* What @slot is for us, as long as @fd is open. -ENOTUNIQ: another says otherwise. */
int store_member_agree(int fd, unsigned slot, uint64_t as);
void store_member_agree_end(int fd, unsigned slot);

#endif
