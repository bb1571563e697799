/* ls.h - the parts of weft ls. */
#ifndef WEFT_CLI_LS_H
#define WEFT_CLI_LS_H

#include <jansson.h>

/* @subsystems as cmd_ls.c makes them. */
void weft_ls_print_tree(json_t *subsystems);

#endif
