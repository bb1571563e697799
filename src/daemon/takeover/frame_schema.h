/* frame_schema.h - the documents of frames.h, key by key: read and written by the same
 * tables. */
#ifndef WEFT_DAEMON_TAKEOVER_FRAME_SCHEMA_H
#define WEFT_DAEMON_TAKEOVER_FRAME_SCHEMA_H

#include "daemon/config/decode.h"

extern const struct weft_schema weft_running_config_schema, weft_takeover_state_schema;

/* What hosts chose is bytes, and so in hexadecimal: a name, char[max + 1], and any bytes, up to max
 * of them, as struct weft_items. */
weft_decode_fn weft_decode_hex_name, weft_decode_hex_bytes;

#endif
