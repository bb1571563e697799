/* input.h - data for a command, from a file or a pipe. */
#ifndef WEFT_CLI_INPUT_H
#define WEFT_CLI_INPUT_H

#include <stddef.h>
#include <sys/types.h>
#include <weft/weft.h>

struct weft_input {
	const char *name; /* for people */
	int fd;           /* -1: not open */
};

/* @path "-": standard input, which must not be a terminal. */
int weft_input_open(struct weft_input *input, const char *path, struct weft_err *err);
void weft_input_close(struct weft_input *input);
/* @want bytes, or fewer at the end of the input: how many; -errno. */
ssize_t weft_input_fill(struct weft_input *input, void *buf, size_t want, struct weft_err *err);

/* All of @path, at most @max bytes; -E2BIG: there are more. */
int weft_input_read(const char *path, void *buf, size_t max, size_t *length, struct weft_err *err);

#endif
