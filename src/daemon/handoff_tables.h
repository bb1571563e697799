/* handoff_tables.h - the documents of handoff.h, key by key: read and written by the same
 * tables. */
#ifndef WEFT_DAEMON_HANDOFF_TABLES_H
#define WEFT_DAEMON_HANDOFF_TABLES_H

#include "daemon/decode.h"

extern const struct weft_schema weft_running_config_schema, weft_takeover_state_schema;

/* What hosts chose is bytes, and so in hexadecimal: a name, char[max + 1], and any bytes, up to max
 * of them, as struct weft_items. */
weft_decode_fn weft_decode_hex_name, weft_decode_hex_bytes;

#endif
