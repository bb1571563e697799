#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static size_t length_of(unsigned char first)
{
	return first < 0x80     ? 1 :
	       first >> 5 == 6  ? 2 :
	       first >> 4 == 14 ? 3 :
	       first >> 3 == 30 ? 4 :
				  0;
}

/* Bytes of the character at @text; 0: a control character, or not UTF-8 (RFC 3629). A terminating 0
 * ends what is looked at. */
static size_t char_length(const char *text)
{
	/* Below these a shorter form exists; U+0080 to U+009F are control characters. */
	static const uint32_t least[] = { 0, 0, 0xa0, 0x800, 0x10000 };
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
	return code < least[len] || code > 0x10ffff || code >> 11 == 27 ? 0 : len;
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
