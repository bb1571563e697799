/* choose.c - the lane that a command goes out on. */
#include "host/cmd.h"

struct host_lane *host_choose(const struct weft_queue *queue)
{
	struct host_lane *lane = queue->lanes[0];

	return lane && lane->ready && !lane->link->closing ? lane : NULL;
}
