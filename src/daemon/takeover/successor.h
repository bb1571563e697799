/* successor.h - the process that is to take our place, as long as it is not sure that it does. */
#ifndef WEFT_DAEMON_TAKEOVER_SUCCESSOR_H
#define WEFT_DAEMON_TAKEOVER_SUCCESSOR_H

#include <sys/types.h>

struct weft_successor {
	pid_t pid;
	int fd; /* that means this process and no later one; -1: it is gone */
};

void weft_successor_open(struct weft_successor *successor, pid_t pid);
/* It was told through @channel that it is not wanted. Blocks, until it has hung up or is killed. */
void weft_successor_release(struct weft_successor *successor, int channel);

#endif
