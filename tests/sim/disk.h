/* disk.h - storage that several targets share, and that takes its time. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdint.h>

#include "backend/backend.h"

enum { DISK_BLOCK = 4096, DISK_BLOCKS = 64 };

void disk_begin(void);                /* all zeroes */
struct weft_backend *disk_open(void); /* another way to the same bytes */
const void *disk_at(unsigned block);  /* as it is */
unsigned disk_busy(void);             /* operations under way */

#endif
