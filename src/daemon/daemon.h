/* daemon.h - the daemon: `weft serve`, for the commands. */
#ifndef WEFT_DAEMON_DAEMON_H
#define WEFT_DAEMON_DAEMON_H

#include "base/err.h"
#include "daemon/config/config.h"
#include "daemon/config/doc.h"

struct weft_serve_options {
	bool takeover;  /* take the place of the target that answers at the control socket … */
	bool drop_rdma; /* … even if it has RDMA connections, which are lost then */
	const char *pidfile; /* has our pid while we serve; NULL: no file */
	bool log_file;       /* SIGHUP reopens the log, see weft_log_to() */
	/* Called when hosts are served (optional). */
	void (*ready)(void *user);
	/* Says why the process exits at once, from within weft_serve() (optional). */
	void (*failed)(void *user, const char *why);
	void *user;
};

/* Serves until a signal, on this thread and one per CPU. 0 after a clean stop. @config came from
 * @doc, which is what `save` writes back. A successor whose takeover fails, and a target that was
 * taken over, exit the process: a clean stop would close connections that belong to the other
 * one. */
int weft_serve(struct weft_config *config, const struct weft_doc *doc,
	       const struct weft_serve_options *options, struct weft_err *err);

#endif
