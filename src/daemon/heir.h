/* heir.h - the process that is to take our place, as long as it is not sure that it does. */
#ifndef WEFT_DAEMON_HEIR_H
#define WEFT_DAEMON_HEIR_H

#include <sys/types.h>

struct weft_heir {
	pid_t pid;
	int fd; /* that means this process and no later one; -1: it is gone */
};

void weft_heir_meet(struct weft_heir *heir, pid_t pid);
/* It was told through @channel that it is not wanted. Blocks, until it has hung up or is killed. */
void weft_heir_part(struct weft_heir *heir, int channel);

#endif
