/* count.h - a counter that must not fall below zero. */
#ifndef WEFT_BASE_COUNT_H
#define WEFT_BASE_COUNT_H

#include <assert.h>

/* One less; what is left. */
#define weft_count_down(counter)                              \
	({                                                    \
		__typeof__(&(counter)) counter_ = &(counter); \
                                                              \
		assert(*counter_ > 0);                        \
		--*counter_;                                  \
	})

#endif
