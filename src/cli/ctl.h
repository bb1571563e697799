/* ctl.h - the parts of weft ctl. */
#ifndef WEFT_CLI_CTL_H
#define WEFT_CLI_CTL_H

#include <jansson.h>

#include "base/err.h"

/* The parameters in @words, NULL at the end: one JSON object, or key=value each. */
json_t *weft_ctl_params(char *const *words, struct weft_err *err);

/* The result of "status", for people. */
void weft_ctl_print_status(json_t *status);

#endif
