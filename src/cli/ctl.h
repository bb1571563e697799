/* ctl.h - the parts of weft ctl. */
#ifndef WEFT_CLI_CTL_H
#define WEFT_CLI_CTL_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

/* The parameters in @words, NULL at the end: one JSON object, or key=value each. */
json_t *weft_ctl_params(char *const *words, struct weft_err *err);

/* Whom to ask. */
struct ctl_target {
	const char *command, *path; /* of the control socket */
	uint32_t limit_ms;          /* of --timeout; 0: not given */
};

/* 0: @value is the time of --timeout; -1: it is none, and that is said. */
int weft_ctl_timeout(struct ctl_target *ask, const char *value);
/* The result, which the caller owns; owns @params. NULL: it failed, and @err says why. */
json_t *weft_ctl_ask(const struct ctl_target *ask, const char *method, json_t *params,
		     struct weft_err *err);

/* The result of "status", for people. */
void weft_ctl_print_status(json_t *status);

#endif
