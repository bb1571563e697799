/* must.h - what a harness promises; a broken promise is a finding. */
#ifndef WEFT_TESTS_MUST_H
#define WEFT_TESTS_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(what)                                                                               \
	do {                                                                                     \
		if (!(what)) {                                                                   \
			fprintf(stderr, "%s:%d: %s: broken: %s\n", __FILE__, __LINE__, __func__, \
				#what);                                                          \
			abort();                                                                 \
		}                                                                                \
	} while (0)

#endif
