/* utf8.c - which characters of a text from outside may be shown, and how the others are escaped.
 *
 * A name that a peer chose must not move a cursor, end a line of a log, or read as another name. So
 * a character is shown if it is valid UTF-8 (RFC 3629), stands where it is written, and is visible.
 * char_length() is the one place that decides it. */
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t length_of(unsigned char first)
{
	return first < 0x80     ? 1 :
	       first >> 5 == 6  ? 2 :
	       first >> 4 == 14 ? 3 :
	       first >> 3 == 30 ? 4 :
				  0;
}

/* Marks of direction, separators of lines, what joins or has no width, tags, and what is no
 * character at all. U+0080 to U+009F control terminals as ESC does. */
static bool is_hidden(uint32_t code)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{ 0x80, 0x9f },     { 0xad, 0xad },     { 0x61c, 0x61c },     { 0x180e, 0x180e },
		{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
		{ 0xfff9, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}

/* Bytes of the character at @text; 0: it must be escaped. Reads no further than a terminating 0. */
static size_t char_length(const char *text)
{
	/* Below these a shorter form exists. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t len = length_of(s[0]);
	uint32_t code;

	if (len < 2)
		return s[0] < 0x20 || s[0] == 0x7f ? 0 : len;
	code = s[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	return code < least[len] || code > 0x10ffff || code >> 11 == 27 || is_hidden(code) ? 0 :
											     len;
}

bool weft_utf8_printable(const char *text)
{
	size_t len;

	for (; *text; text += len) {
		len = char_length(text);
		if (!len)
			return false;
	}
	return true;
}

size_t weft_utf8_show(char *to, size_t size, const char *from)
{
	size_t at = 0, len;

	for (; *from; from += len ? len : 1) {
		len = *from == '\\' ? 0 : char_length(from);
		if (at + (len ? len : WEFT_UTF8_ESCAPE) >= size)
			break;
		if (len)
			memcpy(to + at, from, len);
		else
			sprintf(to + at, "\\x%02x", (unsigned char)*from);
		at += len ? len : WEFT_UTF8_ESCAPE;
	}
	to[at] = '\0';
	return at;
}

void weft_utf8_copy(char *to, const char *from, size_t len)
{
	size_t n = strnlen(from, len), step;

	memcpy(to, from, n);
	while (n && to[n - 1] == ' ')
		n--;
	to[n] = '\0';
	for (; *to; to += step ? step : 1) {
		step = char_length(to);
		if (!step)
			*to = '?';
	}
}
