/* ls.h - the parts of weft ls. */
#ifndef WEFT_CLI_LS_H
#define WEFT_CLI_LS_H

#include <jansson.h>
#include <weft/host.h>

#include "base/err.h"

/* @subsystems as cmd_ls.c makes them. */
void weft_ls_print_tree(json_t *subsystems);

/* Until every path has been tried. */
void weft_ls_wait(struct weft_ctrl *ctrl);
/* Returns how many are not live; @first gets why the first of them is not. */
unsigned weft_ls_add_paths(struct weft_ctrl *ctrl, json_t *list, struct weft_err *first);
/* [ { path, access } ] */
json_t *weft_ls_access(struct weft_ctrl *ctrl, struct weft_ns *ns);

#endif
