/* plural.h - "1 reconnect", "2 reconnects": what follows a count. */
#ifndef WEFT_BASE_PLURAL_H
#define WEFT_BASE_PLURAL_H

#include <stdint.h>

static inline const char *weft_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

#endif
