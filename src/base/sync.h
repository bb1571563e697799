/* sync.h - that a file is there survives a crash as well as what is in it. */
#ifndef WEFT_BASE_SYNC_H
#define WEFT_BASE_SYNC_H

/* Syncs the directory that has @path's name. -errno. */
int weft_sync_name(const char *path);

#endif
