/* plugin.h - what the parts of the plugin share. */
#ifndef WEFT_NBDKIT_PLUGIN_H
#define WEFT_NBDKIT_PLUGIN_H

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <stdatomic.h>

#include "volume/volume.h"

#define EXPORT_NAME_MAX 16

/* The volume connection, one for all clients. */
extern struct weft_volume_conn *plugin_conn;

/* A client's connection. */
struct export
{
	struct weft_volume *volume;
	struct weft_ns_info info;   /* when the client connected: NBD cannot tell it of changes */
	atomic_uint flush_reported; /* losses that a flush has reported: weft_volume_flush() */
};

/* Reports the error to nbdkit, with an errno that NBD has; returns -1. */
int plugin_fail(int rc, const struct weft_err *err);

/* Ends the process when nbdkit is to end and cannot, because the target cannot be reached. */
int shutdown_watch_start(void);
void shutdown_watch_stop(void);

/* The nsid that a client means by @name, if there is such an export. */
int export_nsid(const char *name, uint32_t *nsid, struct weft_err *err);
int export_list(int readonly, int is_tls, struct nbdkit_exports *exports);
const char *export_default(int readonly, int is_tls);
void *export_open(int readonly);
void export_close(void *handle);
int64_t export_size(void *handle);
int export_block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum);
int export_can_write(void *handle);

int io_can_trim(void *handle);
int io_can_zero(void *handle);
int io_can_fast_zero(void *handle);
int io_read(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags);
int io_write(void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags);
int io_flush(void *handle, uint32_t flags);
int io_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags);
int io_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	       struct nbdkit_extents *extents);
int io_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags);

#endif
