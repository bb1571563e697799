/* mount.h - weft mount: namespaces as files. */
#ifndef WEFT_CLI_MOUNT_MOUNT_H
#define WEFT_CLI_MOUNT_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>
#include <weft/host.h>

struct weft_mount_options {
	const char *uri, *dir;
	struct weft_options connect;
	bool read_only, allow_other;
	mode_t mode; /* of the files; without the bits for writing where nobody may */
	bool quiet;  /* what happens later goes to the system's log, not to stderr */
	/* Runs once, when the files are there. */
	void (*ready)(void *user);
	void *user;
};

/* Connects, mounts, serves. Returns when it is unmounted, or asked to end by SIGINT, SIGTERM or
 * SIGHUP. */
int weft_mount_run(const struct weft_mount_options *options, struct weft_err *err);

#endif
