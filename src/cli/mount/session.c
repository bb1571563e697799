/* session.c - a mount session: connect, mount, serve, unmount.
 *
 *   kernel ─▶ /dev/fuse ─▶ libfuse's threads ─▶ dir_ops.c, file_ops.c ─▶ volume ─▶ target
 *   events of the controller ─▶ ctrl_events.c ─▶ ns_table.c, which dir_ops.c reads
 *   signals, interrupted calls ─▶ signals.c */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/host_options.h"
#include "cli/mount/session.h"

#define THREADS_IDLE 16
/* More than the kernel has requests in the background: stat() never waits. */
#define THREADS_MAX 80

static int connect_subsystem(struct weft_mount *mount, struct weft_err *err)
{
	const char *uri = mount->options->uri;
	int rc = weft_volume_conn_open(uri, &mount->options->connect, &mount->conn, err);

	if (rc < 0 || !weft_volume_conn_info(mount->conn)->discovery)
		return rc;
	return weft_fail(err, -EINVAL,
			 "%s is a discovery service; \"weft discover %s\" lists what can be mounted",
			 uri, uri);
}

static int find_namespaces(struct weft_mount *mount, struct weft_err *err)
{
	uint32_t only = weft_volume_conn_info(mount->conn)->nsid;
	int rc = weft_mount_scan(mount, err);

	if (rc < 0 || !only || !weft_list_empty(&mount->table.nodes))
		return rc;
	return weft_host_no_ns(mount->options->uri, only, err);
}

static int add_fuse_options(struct fuse_args *args, const struct weft_mount_options *options)
{
	_cleanup_(weft_freep) char *words = NULL, *name = NULL;
	int rc;

	if (asprintf(&name, "fsname=%s", options->uri) < 0)
		return -ENOMEM;
	rc = fuse_opt_add_opt(&words, "subtype=weft,default_permissions");
	rc |= fuse_opt_add_opt_escaped(&words, name);
	if (options->read_only)
		rc |= fuse_opt_add_opt(&words, "ro");
	if (options->allow_other)
		rc |= fuse_opt_add_opt(&words, "allow_other");
	rc |= fuse_opt_add_arg(args, "weft mount");
	rc |= fuse_opt_add_arg(args, "-o");
	rc |= fuse_opt_add_arg(args, words);
	return rc ? -ENOMEM : 0;
}

/* libfuse prints its errors on stderr itself. */
static int open_session(struct weft_mount *mount, struct weft_err *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int rc = add_fuse_options(&args, mount->options);

	if (!rc)
		mount->session = fuse_session_new(&args, &weft_mount_ops, sizeof(weft_mount_ops),
						  mount);
	fuse_opt_free_args(&args);
	if (!mount->session)
		return weft_fail(err, rc ? rc : -EIO, "libfuse does not start");
	if (!fuse_session_mount(mount->session, mount->options->dir))
		return 0;
	fuse_session_destroy(mount->session);
	return weft_fail(err, -EIO,
			 "%s cannot be mounted on; it takes /dev/fuse, fusermount3 (package "
			 "fuse3) and an empty directory of yours%s",
			 mount->options->dir,
			 mount->options->allow_other ? ", and user_allow_other in /etc/fuse.conf" :
						       "");
}

static void close_session(struct weft_mount *mount)
{
	fuse_session_unmount(mount->session);
	fuse_session_destroy(mount->session);
}

static int fuse_loop(struct weft_mount *mount, struct weft_err *err)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int rc;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_idle_threads(config, THREADS_IDLE);
	fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	rc = fuse_session_loop_mt(mount->session, config);
	fuse_loop_cfg_destroy(config);
	return rc < 0 ? weft_fail(err, rc, "the mount ended: %s", strerror(-rc)) : 0;
}

static int run_mount_threads(struct weft_mount *mount, struct weft_err *err)
{
	int rc = weft_mount_signals_start(mount);

	if (rc < 0)
		return rc;
	rc = weft_mount_events_start(mount);
	if (rc == 0) {
		mount->options->ready(mount->options->user);
		rc = fuse_loop(mount, err);
		weft_mount_events_stop(mount);
	}
	weft_mount_signals_stop(mount);
	return rc;
}

static int mount_and_serve(struct weft_mount *mount, struct weft_err *err)
{
	int rc;

	weft_mount_table_init(&mount->table, mount->conn);
	rc = find_namespaces(mount, err);
	if (rc == 0)
		rc = open_session(mount, err);
	if (rc == 0) {
		rc = run_mount_threads(mount, err);
		close_session(mount);
	}
	weft_mount_table_destroy(&mount->table);
	return rc;
}

int weft_mount_run(const struct weft_mount_options *options, struct weft_err *err)
{
	struct weft_mount mount = { .options = options, .since = time(NULL) };
	int rc;

	openlog("weft-mount", LOG_PID, LOG_DAEMON);
	weft_mount_buffers_init(&mount.buffers, WEFT_MOUNT_REQUEST_MAX);
	rc = weft_mount_signals_prepare(&mount);
	if (rc == 0)
		rc = weft_mount_calls_init(&mount.calls);
	if (rc == 0)
		rc = connect_subsystem(&mount, err);
	if (rc == 0)
		rc = mount_and_serve(&mount, err);
	weft_volume_conn_close(mount.conn);
	weft_mount_buffers_destroy(&mount.buffers);
	return rc < 0 ? weft_fail(err, rc, "%s", strerror(-rc)) : 0;
}
