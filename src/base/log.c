#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static enum weft_log_level level_max = WEFT_LOG_INFO;

static const char *const names[] = { "error", "warning", "info", "debug" };

void weft_log_set_level(enum weft_log_level level)
{
	level_max = level;
}

/* Under systemd the journal has its own clock and reads the level from "<N>". */
static int write_prefix(char *line, size_t size, enum weft_log_level level)
{
	static const int syslog_levels[] = { 3, 4, 6, 7 };
	struct timespec now;
	struct tm tm;

	if (getenv("JOURNAL_STREAM"))
		return snprintf(line, size, "<%d>", syslog_levels[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	return snprintf(line, size, "%02d:%02d:%02d.%03ld %s: ", tm.tm_hour, tm.tm_min, tm.tm_sec,
			now.tv_nsec / 1000000, names[level]);
}

void weft_log(enum weft_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int len;

	if (level > level_max)
		return;
	len = write_prefix(line, sizeof(line), level);
	va_start(ap, fmt);
	len += vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	va_end(ap);
	if (len > (int)sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	/* One write per line, so that lines of several threads do not mix. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
