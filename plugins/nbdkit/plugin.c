/* plugin.c - nbdkit weft uri=…: serves any NVMe-oF namespace over NBD.
 *
 *   NBD clients ─▶ nbdkit's threads ─▶ io.c ─▶ volume connection ─▶ each a queue of a pool
 *                                            │
 *                              one controller, for all clients ─▶ target
 *
 * nbdkit goes into the background between get_ready and after_fork, and threads would not survive
 * that. So get_ready connects and disconnects again, to report a mistake while somebody sees it;
 * after_fork connects for good. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "plugin.h"

#define URI_MAX 4096 /* of all paths together */
#ifdef WEFT_RDMA
#define TRANSPORTS "tcp rdma"
#else
#define TRANSPORTS "tcp"
#endif

struct weft_volume_conn *plugin_conn;
static char uri[URI_MAX], words[URI_MAX];

/* nbdkit turns an errno that NBD does not have into EINVAL. */
static int nbd_errno(int error)
{
	switch (error) {
	case EPERM:
	case EINVAL:
	case ENOMEM:
	case ENOSPC:
		return error;
	case EROFS:
		return EPERM;
	case ERANGE:
		return ENOSPC;
	case EOPNOTSUPP:
		return ENOTSUP;
	default:
		return EIO;
	}
}

int plugin_fail(int rc, const struct weft_err *err)
{
	nbdkit_error("%s", err->text[0] ? err->text : strerror(-rc));
	nbdkit_set_error(nbd_errno(-rc));
	return -1;
}

/* --- what the command line says --------------------------------------------------------------- */

static int too_long(void)
{
	nbdkit_error("the URI and its words are longer than %d bytes", URI_MAX - 1);
	return -1;
}

static int set_uri(const char *value)
{
	if (uri[0]) {
		nbdkit_error("uri= is given twice");
		return -1;
	}
	return snprintf(uri, sizeof(uri), "%s", value) < URI_MAX ? 0 : too_long();
}

/* Everything else is a word of the URI; connecting finds what is wrong with one. */
static int add_uri_word(const char *key, const char *value)
{
	size_t used = strlen(words), room = sizeof(words) - used;
	int n = snprintf(words + used, room, "&%s=%s", key, value);

	return n > 0 && (size_t)n < room ? 0 : too_long();
}

static int on_config(const char *key, const char *value)
{
	return !strcmp(key, "uri") ? set_uri(value) : add_uri_word(key, value);
}

/* The last of several paths' URIs; a word behind it applies to all. */
static const char *last_uri(void)
{
	const char *last = uri, *next;

	while ((next = strcasestr(last, ",nvme+")))
		last = next + 1;
	return last;
}

static int on_config_complete(void)
{
	size_t used = strlen(uri), room = sizeof(uri) - used;

	if (!used) {
		nbdkit_error("where is it? uri=nvme+tcp://HOST:PORT/SUBNQN");
		return -1;
	}
	if (!words[0])
		return 0;
	if (!strchr(last_uri(), '?'))
		words[0] = '?';
	return (size_t)snprintf(uri + used, room, "%s", words) < room ? 0 : too_long();
}

/* --- the connection --------------------------------------------------------------------------- */

static int check_exports(struct weft_err *err)
{
	struct weft_volume *volume;
	uint32_t nsid;
	int rc;

	if (weft_volume_conn_info(plugin_conn)->discovery)
		return weft_fail(err, -EINVAL,
				 "%s is a discovery service; \"weft discover\" lists the subsystems",
				 uri);
	rc = export_nsid("", &nsid, err);
	if (rc == 0)
		rc = weft_volume_open(plugin_conn, nsid, &volume, err);
	if (rc == 0)
		weft_volume_close(volume);
	return rc;
}

static int on_get_ready(void)
{
	struct weft_err err = {};
	int rc = weft_volume_conn_open(uri, NULL, &plugin_conn, &err);

	if (rc == 0) {
		rc = check_exports(&err);
		weft_volume_conn_close(take_ptr(&plugin_conn));
	}
	return rc < 0 ? plugin_fail(rc, &err) : 0;
}

static int on_after_fork(void)
{
	struct weft_err err = {};
	int rc = weft_volume_conn_open(uri, NULL, &plugin_conn, &err);

	if (rc < 0)
		return plugin_fail(rc, &err);
	rc = shutdown_watch_start();
	if (rc < 0)
		weft_volume_conn_close(take_ptr(&plugin_conn));
	return rc < 0 ? plugin_fail(rc, &err) : 0;
}

/* nbdkit has waited for I/O under way. When nbdkit is told to end, it does not close its clients'
 * exports; they end with the process. */
static void on_cleanup(void)
{
	if (!plugin_conn)
		return;
	shutdown_watch_stop();
	weft_volume_conn_close(take_ptr(&plugin_conn));
}

static void on_dump(void)
{
	printf("weft_version=%s\n", weft_version());
	printf("weft_transports=" TRANSPORTS "\n");
}

/* --- for every client ------------------------------------------------------------------------- */

static int always_true(void *handle)
{
	return 1;
}

static int always_false(void *handle)
{
	return 0;
}

static int can_fua_native(void *handle)
{
	return NBDKIT_FUA_NATIVE;
}

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static struct nbdkit_plugin weft_plugin = {
	.name = "weft",
	.longname = "Weft NVMe over Fabrics",
	.version = WEFT_VERSION,
	.description = "NVMe over Fabrics namespaces, from user space",
	.magic_config_key = "uri",
	.config = on_config,
	.config_complete = on_config_complete,
	.config_help = "[uri=]nvme+tcp://HOST:PORT/SUBNQN  (required) the subsystem;\n"
		       "          or nvme+rdma://…\n"
		       "nsid=N    export this namespace only; else all: ns1, ns2, …\n"
		       "queues=N  I/Os at once, at most; hdgst=1, ddgst=1, loss_timeout=… and\n"
		       "          every other word that a URI may have",
	.dump_plugin = on_dump,
	.get_ready = on_get_ready,
	.after_fork = on_after_fork,
	.cleanup = on_cleanup,
	.list_exports = export_list,
	.default_export = export_default,
	.open = export_open,
	.close = export_close,
	.get_size = export_size,
	.block_size = export_block_size,
	.can_write = export_can_write,
	.can_flush = always_true,
	.can_fua = can_fua_native,
	.can_trim = io_can_trim,
	.can_zero = io_can_zero,
	.can_fast_zero = io_can_fast_zero,
	/* Nothing is kept here, and a flush covers what any client has written: it goes to every
	 * path that has completed writes of the namespace, by whichever queue. */
	.can_multi_conn = always_true,
	.is_rotational = always_false,
	.pread = io_read,
	.pwrite = io_write,
	.flush = io_flush,
	.trim = io_trim,
	.zero = io_zero,
	.can_extents = always_true,
	.extents = io_extents,
};

NBDKIT_REGISTER_PLUGIN(weft_plugin)
