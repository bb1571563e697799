/* frame_schema.h - the keys of the "prepare" and "state" documents; one schema encodes and
 * decodes. */
#ifndef WEFT_DAEMON_TAKEOVER_FRAME_SCHEMA_H
#define WEFT_DAEMON_TAKEOVER_FRAME_SCHEMA_H

#include "daemon/config/decode.h"

extern const struct weft_schema weft_running_config_schema, weft_takeover_state_schema;

/* Values that hosts chose may be any bytes, and so are hexadecimal: a name, char[max + 1], and up
 * to max bytes as struct weft_items. */
weft_decode_fn weft_decode_hex_name, weft_decode_hex_bytes;

/* --- hex.c: bytes as hexadecimal text --------------------------------------------------------- */

char *weft_hex_encode(const void *bytes, size_t len); /* malloc'ed; NULL: out of memory */
/* Returns how many bytes @text has; -EINVAL: it is not hexadecimal, or has more than @room. */
long weft_hex_decode(const char *text, void *bytes, size_t room);

#endif
