/* hex.h - bytes as text, for documents. */
#ifndef WEFT_DAEMON_TAKEOVER_HEX_H
#define WEFT_DAEMON_TAKEOVER_HEX_H

#include <stddef.h>

char *weft_hex_encode(const void *bytes, size_t len); /* malloc'ed; NULL: out of memory */
/* How many bytes @text is; -EINVAL: it is not hexadecimal, or more than @room. */
long weft_hex_decode(const char *text, void *bytes, size_t room);

#endif
