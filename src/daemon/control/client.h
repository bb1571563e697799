/* client.h - a client of the control socket: calls a method of a running target. */
#ifndef WEFT_DAEMON_CONTROL_CLIENT_H
#define WEFT_DAEMON_CONTROL_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* How long to wait for the target. */
struct weft_ctl_limit {
	uint32_t ms;      /* 0: as long as it takes */
	const char *name; /* of the option that sets it, for the error; NULL: no option does */
};

/* Calls @method over the socket at @path and waits for its result, which the caller owns; owns
 * @params. NULL and the sentence set if it failed. After a timeout the target may still carry the
 * call out. */
json_t *weft_ctl_call(const char *path, const char *method, json_t *params,
		      struct weft_ctl_limit limit, struct weft_err *err);
enum { WEFT_CTL_METHODS_MAX = 32 };

/* The names of the methods that a target of this version has, NULL at the end. */
void weft_ctl_methods(const char *names[WEFT_CTL_METHODS_MAX + 1]);
/* Whether @method changes nothing if nobody receives its answer. */
bool weft_ctl_needs_its_answer(const char *method);

#endif
