/* line_buffer.h - a growing buffer that bytes go into and lines come out of, up to a limit. */
#ifndef WEFT_DAEMON_CONTROL_LINE_BUFFER_H
#define WEFT_DAEMON_CONTROL_LINE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct weft_line_buffer {
	char *bytes;
	size_t start, end, size; /* bytes[start … end) are not taken yet */
	size_t seen;             /* bytes[start … seen) have no newline */
	size_t line_max;
};

void weft_line_buffer_init(struct weft_line_buffer *lines, size_t line_max);
void weft_line_buffer_free(struct weft_line_buffer *lines);

/* Room for more bytes; NULL when the line under way has reached the limit (or memory ran out). */
char *weft_line_buffer_room(struct weft_line_buffer *lines, size_t *room);
void weft_line_buffer_filled(struct weft_line_buffer *lines, size_t count);
/* The next line without its newline, valid until the next call for room; false: none yet. */
bool weft_line_buffer_take(struct weft_line_buffer *lines, const char **line, size_t *len);

#endif
