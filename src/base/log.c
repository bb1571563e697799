#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

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

/* Whatever a peer calls itself: a line is a line, and says what it seems to say. */
static void write_line(enum weft_log_level level, const char *fmt, va_list ap)
{
	char text[1024], line[1200];
	size_t len = (size_t)write_prefix(line, sizeof(line), level);

	vsnprintf(text, sizeof(text), fmt, ap);
	len += weft_utf8_show(line + len, sizeof(line) - len - 1, text);
	line[len++] = '\n';
	/* One write per line, so that lines of several threads do not mix. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void weft_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > level_max)
		return;
	va_start(ap, fmt);
	write_line(level, fmt, ap);
	va_end(ap);
}

/* --- lines without end ------------------------------------------------------------------------ */

enum { LINES_PER_S = 20 };

struct share {
	const char *of;
	_Atomic int64_t second;
	atomic_uint lines, left_out;
};

static struct share peers = { .of = "peers" }, storage = { .of = "storage" };

/* Counts by whole seconds; two threads that enter a new one together may let a line more
 * through. */
static bool may_speak(struct share *share)
{
	struct timespec now;
	unsigned left_out;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (atomic_exchange(&share->second, (int64_t)now.tv_sec) != now.tv_sec) {
		atomic_store(&share->lines, 0);
		left_out = atomic_exchange(&share->left_out, 0);
		if (left_out)
			weft_warn("%u more lines about %s were left out", left_out, share->of);
	}
	if (atomic_fetch_add(&share->lines, 1) < LINES_PER_S)
		return true;
	atomic_fetch_add(&share->left_out, 1);
	return false;
}

static void write_share(struct share *share, enum weft_log_level level, const char *fmt, va_list ap)
{
	if (level <= level_max && may_speak(share))
		write_line(level, fmt, ap);
}

void weft_peer_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_share(&peers, level, fmt, ap);
	va_end(ap);
}

void weft_storage_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_share(&storage, level, fmt, ap);
	va_end(ap);
}
