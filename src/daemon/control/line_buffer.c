/* line_buffer.c - a growing buffer that bytes go into and lines come out of, up to a limit. */
#include "daemon/control/line_buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 4096

void weft_line_buffer_init(struct weft_line_buffer *lines, size_t line_max)
{
	memset(lines, 0, sizeof(*lines));
	lines->line_max = line_max;
}

void weft_line_buffer_free(struct weft_line_buffer *lines)
{
	free(lines->bytes);
	memset(lines, 0, sizeof(*lines));
}

static void line_buffer_compact(struct weft_line_buffer *lines)
{
	assert(lines->start <= lines->seen && lines->seen <= lines->end);
	if (!lines->start)
		return;
	memmove(lines->bytes, lines->bytes + lines->start, lines->end - lines->start);
	lines->seen -= lines->start;
	lines->end -= lines->start;
	lines->start = 0;
}

/* One byte over the limit, for the newline. */
static bool line_buffer_grow(struct weft_line_buffer *lines)
{
	size_t size = lines->size ? lines->size * 2 : SIZE_FIRST;
	char *bytes;

	if (size > lines->line_max + 1)
		size = lines->line_max + 1;
	bytes = size > lines->size ? realloc(lines->bytes, size) : NULL;
	if (!bytes)
		return false;
	lines->bytes = bytes;
	lines->size = size;
	return true;
}

char *weft_line_buffer_room(struct weft_line_buffer *lines, size_t *room)
{
	line_buffer_compact(lines);
	if (lines->end == lines->size && !line_buffer_grow(lines))
		return NULL;
	*room = lines->size - lines->end;
	return lines->bytes + lines->end;
}

void weft_line_buffer_filled(struct weft_line_buffer *lines, size_t count)
{
	assert(count <= lines->size - lines->end);
	lines->end += count;
}

bool weft_line_buffer_take(struct weft_line_buffer *lines, const char **line, size_t *len)
{
	char *newline = NULL;

	assert(lines->start <= lines->seen && lines->seen <= lines->end);
	if (lines->end > lines->seen)
		newline = memchr(lines->bytes + lines->seen, '\n', lines->end - lines->seen);
	if (!newline) {
		lines->seen = lines->end;
		return false;
	}
	*line = lines->bytes + lines->start;
	*len = (size_t)(newline - *line);
	lines->start = lines->seen = (size_t)(newline + 1 - lines->bytes);
	return true;
}
