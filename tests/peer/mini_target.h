/* mini_target.h - a small target for one queue: a disk in memory, and a mood for every command.
 *
 * It is honest about success in everything but what a mood says; a host must not be fooled by that
 * either: what it reports as read or written is what this disk holds. It counts what must not be
 * done twice, Copy and Compare and Write: both are done while the host still has the connection, or
 * not at all, so that whatever is done belongs to what the host has under way. */
#ifndef WEFT_TESTS_PEER_MINI_TARGET_H
#define WEFT_TESTS_PEER_MINI_TARGET_H

#include <stdbool.h>
#include <stdint.h>

enum { DISK_BLOCKS = 256, DISK_BLOCK = 512, DISK_CIDS = 16 };

/* What becomes of a command. */
enum reaction {
	REACT_GOOD,
	REACT_SUCCESS_FLAG, /* a read's last data is its completion */
	REACT_PIECES,       /* data in several PDUs */
	REACT_REFUSE,       /* with a status of the program's */
	REACT_BUSY,         /* a status that asks for another try */
	REACT_HOLD,         /* no answer, until mini_target_release() */
	REACT_SHORT,        /* success, and not all of the data moved */
	REACT_CORRUPT,      /* a read's data is not what its digest says */
	REACT_HANG_UP,      /* at once; status 1: when all is done, without an answer */
	REACT_WRONG_CID,
	REACT_TERMINATE,
	REACTIONS,
};

extern uint8_t disk[DISK_BLOCKS][DISK_BLOCK];
extern unsigned
	mini_target_writes[DISK_BLOCKS]; /* what was done to a block that must not be done twice */
/* It has answered a command that it may not have carried out; the user takes it back. */
extern bool mini_target_lied;

void mini_target_react(enum reaction reaction, uint16_t status); /* of the next commands, in line */
void mini_target_accept(int fd, bool hdgst, bool ddgst); /* the queue has connected (again) */
bool mini_target_serve(void);                            /* true: there was something to do */
void mini_target_release(void);
void mini_target_hang_up(void);
void mini_target_forget(void); /* moods */

#endif
