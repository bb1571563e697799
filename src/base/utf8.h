/* utf8.h - text from outside that people will see. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool weft_utf8_printable(const char *text);
/* At most @len bytes of @from, up to a 0, without trailing spaces; "?" for what a terminal might
 * act on. @to has room for @len + 1. */
void weft_utf8_copy(char *to, const char *from, size_t len);

#endif
