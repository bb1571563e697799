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
/* Numbers the paths from @base on. Returns how many are not live; @first gets why the first of them
 * is not. */
unsigned weft_ls_add_paths(struct weft_ctrl *ctrl, size_t base, json_t *list,
			   struct weft_err *first);
/* To @list: { path, ana_state }, by the same numbers. @other: it is not the one that the list is
 * of. */
void weft_ls_add_access(struct weft_ctrl *ctrl, struct weft_ns *ns, bool other, size_t base,
			json_t *list);
/* Every namespace gets an entry for each controller of its subsystem: those that do not have it are
 * "absent", those that could not be asked "unknown". */
void weft_ls_complete_access(json_t *subsystems);

#endif
