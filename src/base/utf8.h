/* utf8.h - text from outside that people will see. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* All of it can be shown: UTF-8 without control characters, without what turns the direction of
 * writing, and without what cannot be seen. */
bool weft_utf8_printable(const char *text);

enum { WEFT_UTF8_ESCAPE = 4 }; /* bytes that one byte of @from becomes at most */
/* As people and logs see it: what cannot be shown, and the backslash, as \xNN for each byte, so that
 * two texts never look the same. As many characters as there is room for, and a 0; returns the
 * bytes before it. */
size_t weft_utf8_show(char *to, size_t size, const char *from);
/* For a field of fixed size: at most @len bytes of @from, up to a 0, without trailing spaces; "?"
 * for each byte that cannot be shown. @to has room for @len + 1. */
void weft_utf8_copy(char *to, const char *from, size_t len);

#endif
