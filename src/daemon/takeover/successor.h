/* successor.h - the successor: the process that is to take our place, until "go" is sent. */
#ifndef WEFT_DAEMON_TAKEOVER_SUCCESSOR_H
#define WEFT_DAEMON_TAKEOVER_SUCCESSOR_H

#include <sys/types.h>

struct weft_successor {
	pid_t pid;
	int fd; /* pidfd; -1: the process is gone */
};

void weft_successor_open(struct weft_successor *successor, pid_t pid);
/* The successor was told through @channel that the takeover has failed. Blocks until it has closed
 * the channel, or kills it. */
void weft_successor_release(struct weft_successor *successor, int channel);

#endif
