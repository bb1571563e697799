/* count.h - a counter that must not fall below zero. */
#ifndef WEFT_BASE_COUNT_H
#define WEFT_BASE_COUNT_H

#include <assert.h>

/* One less; returns what is left. */
#define weft_count_down(counter) (assert((counter) > 0), --(counter))

#endif
