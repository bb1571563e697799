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
enum mood {
	MOOD_GOOD,
	MOOD_SUCCESS_FLAG, /* a read's last data is its completion */
	MOOD_PIECES,       /* data in several PDUs */
	MOOD_REFUSE,       /* with a status of the program's */
	MOOD_BUSY,         /* a status that asks for another try */
	MOOD_HOLD,         /* no answer, until disk_release() */
	MOOD_SHORT,        /* success, and not all of the data moved */
	MOOD_CORRUPT,      /* a read's data is not what its digest says */
	MOOD_HANG_UP,      /* at once; status 1: when all is done, without an answer */
	MOOD_WRONG_CID,
	MOOD_TERMINATE,
	MOODS,
};

extern uint8_t disk[DISK_BLOCKS][DISK_BLOCK];
extern unsigned disk_deeds[DISK_BLOCKS]; /* what was done to a block that must not be done twice */

void disk_mood(enum mood mood, uint16_t status);  /* of the next commands, in line */
void disk_accept(int fd, bool hdgst, bool ddgst); /* the queue has connected (again) */
bool disk_serve(void);                            /* true: there was something to do */
void disk_release(void);
void disk_hang_up(void);
void disk_forget(void); /* moods */

#endif
