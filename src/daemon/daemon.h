/* daemon.h - what `weft serve` is, for the commands. */
#ifndef WEFT_DAEMON_DAEMON_H
#define WEFT_DAEMON_DAEMON_H

#include "base/err.h"
#include "daemon/config.h"
#include "daemon/doc.h"

/* Serves until a signal says stop, on this thread and one per CPU. 0 after a clean stop. @config
 * came from @doc, which is what `save` writes back. */
int weft_serve(struct weft_config *config, const struct weft_doc *doc, struct weft_err *err);

#endif
