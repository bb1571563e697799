/* input.h - a little data for a command: a file, or a pipe. */
#ifndef WEFT_CLI_INPUT_H
#define WEFT_CLI_INPUT_H

#include <stddef.h>
#include <weft/weft.h>

/* All of @path ("-": standard input), at most @max bytes; -E2BIG: there are more. */
int weft_input_read(const char *path, void *buf, size_t max, size_t *length, struct weft_err *err);

#endif
