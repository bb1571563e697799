/* disk.h - disks that several targets share, and that take their time. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdint.h>

#include "media.h"

struct sim_node;

enum { DISKS = 2 };

void disks_begin(void); /* all zeroes */
/* Another way to the same bytes: @owner's, which is @node of a cluster (0: of none). */
struct weft_backend *disk_open(unsigned disk, unsigned node, const struct sim_node *owner);
const void *disk_at(unsigned disk, unsigned block); /* as it is */
/* Somebody's who needs no way there, at once. */
void disk_carry_out(unsigned disk, const struct weft_io *io);
unsigned disks_busy(void); /* operations under way */
/* Somebody has a way to a disk as @node, or had one and an operation of it is under way. */
bool disks_left(unsigned node);

/* @owner is dead: of what it had under way some will still happen, when its time has come. */
void disks_killed(const struct sim_node *owner);
/* What is not durable is there or not; all owners have been killed. */
void disks_lose_power(void);
/* From now on operations may fail, or no more. */
void disk_trouble(unsigned disk, bool on);
unsigned disk_failures(unsigned disk); /* how many have */

#endif
