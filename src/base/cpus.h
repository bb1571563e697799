/* cpus.h - sets of CPUs as people write them: 0-3,5. */
#ifndef WEFT_BASE_CPUS_H
#define WEFT_BASE_CPUS_H

#include <sched.h>
#include <stddef.h>

#include "base/err.h"

/* -EINVAL, with a sentence: @text is not a list of CPUs. */
int weft_cpus_parse(const char *text, cpu_set_t *cpus, struct weft_err *err);
/* The same; -EINVAL, too, if the list has a CPU that this thread may not use. */
int weft_cpus_parse_usable(const char *text, cpu_set_t *cpus, struct weft_err *err);
void weft_cpus_format(const cpu_set_t *cpus, char *text, size_t size);

#endif
