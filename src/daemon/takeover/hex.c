/* hex.c - bytes as hexadecimal text. */
#include "daemon/takeover/frame_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *weft_hex_encode(const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = bytes;
	char *text = malloc(2 * len + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[from[i] >> 4];
		text[2 * i + 1] = digits[from[i] & 15];
	}
	text[2 * len] = '\0';
	return text;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

long weft_hex_decode(const char *text, void *bytes, size_t room)
{
	size_t len = strlen(text);
	unsigned char *to = bytes;

	if (len % 2 || len / 2 > room)
		return -EINVAL;
	for (size_t i = 0; i < len / 2; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		to[i] = (unsigned char)(high << 4 | low);
	}
	return (long)(len / 2);
}
