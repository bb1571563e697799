/* stuck.h - a disk that stands still while the test says so: fsync(), and the close of a backend's
 * file, wait in whichever thread calls them.
 *
 * It has no header in common with <weft/host.h>, see world/target_thread.h. May be called from any
 * thread. */
#ifndef WEFT_TESTS_STORAGE_STUCK_H
#define WEFT_TESTS_STORAGE_STUCK_H

enum stuck_at { STUCK_NOWHERE, STUCK_AT_SYNC, STUCK_AT_CLOSE };

void stuck_hold(enum stuck_at at); /* STUCK_NOWHERE: and whoever waits goes on */
void stuck_until_one_waits(void);

#endif
