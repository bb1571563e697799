/* utf8.h - text from outside that people will see: which characters are printable, and escapes for
 * the others. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is all of it printable: UTF-8 without control characters, direction marks and invisible
 * characters? */
bool weft_utf8_printable(const char *text);

enum { WEFT_UTF8_ESCAPE = 4 }; /* bytes that one byte of @from becomes at most */
/* For people and logs: bytes that are not printable, and the backslash, become \xNN, so that two
 * texts never look the same. As many characters as there is room for, and a 0; returns the bytes
 * before it. */
size_t weft_utf8_show(char *to, size_t size, const char *from);
/* For a field of fixed size: at most @len bytes of @from, up to a 0, without trailing spaces; "?"
 * for each byte that cannot be shown. @to has room for @len + 1. */
void weft_utf8_copy(char *to, const char *from, size_t len);

#endif
