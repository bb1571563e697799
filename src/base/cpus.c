/* cpus.c - sets of CPUs as people write them: 0-3,5. */
#include "base/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number below CPU_SETSIZE, or -1. */
static int parse_cpu(const char **at)
{
	unsigned long cpu;
	char *end;

	if (!isdigit((unsigned char)**at))
		return -1;
	cpu = strtoul(*at, &end, 10);
	*at = end;
	return cpu < CPU_SETSIZE ? (int)cpu : -1;
}

static int parse_range(const char **at, cpu_set_t *cpus)
{
	int first = parse_cpu(at), last = first;

	if (first >= 0 && **at == '-') {
		(*at)++;
		last = parse_cpu(at);
	}
	if (first < 0 || last < first)
		return -EINVAL;
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, cpus);
	return 0;
}

static int parse_list(const char *at, cpu_set_t *cpus)
{
	CPU_ZERO(cpus);
	while (!parse_range(&at, cpus)) {
		if (!*at)
			return 0;
		if (*at++ != ',')
			return -EINVAL;
	}
	return -EINVAL;
}

int weft_cpus_parse(const char *text, cpu_set_t *cpus, struct weft_err *err)
{
	if (parse_list(text, cpus) < 0)
		return weft_fail(err, -EINVAL, "expected CPUs such as 0-3,5, got \"%s\"", text);
	return 0;
}

int weft_cpus_parse_usable(const char *text, cpu_set_t *cpus, struct weft_err *err)
{
	cpu_set_t allowed, usable;
	char list[128];
	int rc = weft_cpus_parse(text, cpus, err);

	if (rc < 0)
		return rc;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return weft_fail(err, -errno, "sched_getaffinity: %s", strerror(errno));
	CPU_AND(&usable, cpus, &allowed);
	if (CPU_EQUAL(&usable, cpus))
		return 0;
	weft_cpus_format(&allowed, list, sizeof(list));
	return weft_fail(err, -EINVAL,
			 "expected some of the CPUs this process may use (%s), got \"%s\"", list,
			 text);
}

void weft_cpus_format(const cpu_set_t *cpus, char *text, size_t size)
{
	int last;
	size_t len = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPU_SETSIZE && len < size; cpu = last + 1) {
		last = cpu;
		if (!CPU_ISSET(cpu, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		len += (size_t)snprintf(text + len, size - len, "%s%d", len ? "," : "", cpu);
		if (last > cpu && len < size)
			len += (size_t)snprintf(text + len, size - len, "-%d", last);
	}
}
