/* call.h - a call of a running target's method, from outside. */
#ifndef WEFT_DAEMON_CALL_H
#define WEFT_DAEMON_CALL_H

#include <jansson.h>

#include "base/err.h"

/* Calls @method over the socket at @path and waits for its result, which the caller owns; owns
 * @params. NULL and the sentence set when it failed. */
json_t *weft_ctl_call(const char *path, const char *method, json_t *params, struct weft_err *err);

#endif
