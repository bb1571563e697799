/* hex.h - bytes as hexadecimal text. */
#ifndef WEFT_DAEMON_TAKEOVER_HEX_H
#define WEFT_DAEMON_TAKEOVER_HEX_H

#include <stddef.h>

char *weft_hex_encode(const void *bytes, size_t len); /* malloc'ed; NULL: out of memory */
/* Returns how many bytes @text has; -EINVAL: it is not hexadecimal, or has more than @room. */
long weft_hex_decode(const char *text, void *bytes, size_t room);

#endif
