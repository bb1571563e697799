/* log.c - the log: one line per event, to standard error, a file or the journal. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/chase.h"
#include "base/cleanup.h"
#include "base/plural.h"
#include "base/utf8.h"

#define LOG_MODE 0640

static enum weft_log_level level_max = WEFT_LOG_INFO;

static const char *const names[] = { "error", "warning", "info", "debug" };

void weft_log_set_level(enum weft_log_level level)
{
	level_max = level;
}

/* --- destination ------------------------------------------------------------------------------ */

enum style {
	UNKNOWN,
	CLOCK,   /* for a terminal: the time of day */
	DATE,    /* for a file: date and time */
	JOURNAL, /* has its own clock, and reads the level from "<N>" */
};

static int log_fd = STDERR_FILENO;
static char *log_path; /* of @log_fd; NULL: it is standard error */
static _Atomic enum style log_style;

/* systemd says which device and inode are its journal's: standard error may have been
 * redirected. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &st) &&
	       st.st_dev == device && st.st_ino == inode;
}

static enum style choose_style(void)
{
	enum style style = atomic_load(&log_style);

	if (style != UNKNOWN)
		return style;
	style = isatty(log_fd) ? CLOCK : is_journal(log_fd) ? JOURNAL : DATE;
	atomic_store(&log_style, style);
	return style;
}

/* In the background standard error is the log file, too, for what others print. */
static bool stderr_is_log(void)
{
	struct stat a, b;

	return log_fd == STDERR_FILENO || (!fstat(log_fd, &a) && !fstat(STDERR_FILENO, &b) &&
					   a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

int weft_log_reopen(struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = weft_chase_or_create(log_path, O_APPEND, LOG_MODE, err);

	if (fd < 0)
		return take_fd(&fd);
	if (stderr_is_log())
		dup2(fd, STDERR_FILENO);
	/* Atomic for threads that write at this moment. */
	if (dup3(fd, log_fd, O_CLOEXEC) < 0)
		return weft_fail(err, -errno, "%s: %s", log_path, strerror(errno));
	return 0;
}

int weft_log_to(const char *path, struct weft_err *err)
{
	_cleanup_(weft_freep) char *copy = strdup(path);
	int fd;

	if (!copy)
		return weft_fail(err, -ENOMEM, "no memory");
	fd = weft_chase_or_create(path, O_APPEND, LOG_MODE, err);
	if (fd < 0)
		return fd;
	log_path = take_ptr(&copy);
	log_fd = fd;
	atomic_store(&log_style, UNKNOWN);
	return 0;
}

int weft_log_fd(void)
{
	return log_fd;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int write_prefix(char *line, size_t size, enum weft_log_level level)
{
	static const int syslog_levels[] = { 3, 4, 6, 7 };
	enum style style = choose_style();
	struct timespec now;
	int length = 0;
	struct tm tm;

	if (style == JOURNAL)
		return snprintf(line, size, "<%d>", syslog_levels[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	if (style == DATE)
		length = (int)strftime(line, size, "%Y-%m-%d ", &tm);
	return length + snprintf(line + length, size - (size_t)length,
				 "%02d:%02d:%02d.%03ld %s: ", tm.tm_hour, tm.tm_min, tm.tm_sec,
				 now.tv_nsec / 1000000, names[level]);
}

/* Peers choose their names, so the text is escaped: it cannot add a line or look like another
 * one. */
static void write_line(int fd, enum weft_log_level level, const char *fmt, va_list ap)
{
	char text[1024], line[1200];
	size_t len = (size_t)write_prefix(line, sizeof(line), level);

	vsnprintf(text, sizeof(text), fmt, ap);
	len += weft_utf8_show(line + len, sizeof(line) - len - 1, text);
	line[len++] = '\n';
	/* One write per line, so that lines of several threads do not mix. */
	if (write(fd, line, len) < 0)
		return;
}

void weft_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > level_max)
		return;
	va_start(ap, fmt);
	write_line(log_fd, level, fmt, ap);
	va_end(ap);
}

void weft_fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(log_fd, WEFT_LOG_ERROR, fmt, ap);
	va_end(ap);
	if (stderr_is_log())
		return;
	va_start(ap, fmt);
	write_line(STDERR_FILENO, WEFT_LOG_ERROR, fmt, ap);
	va_end(ap);
}

/* --- rate limits ------------------------------------------------------------------------------ */

enum { LINES_PER_S = 20 };

struct rate_limit {
	const char *of;
	_Atomic int64_t second;
	atomic_uint lines, suppressed;
};

static struct rate_limit peers = { .of = "peers" }, storage = { .of = "storage" };

/* Counts by whole seconds; two threads that enter a new one together may let a line more
 * through. */
static bool limit_passes(struct rate_limit *limit)
{
	struct timespec now;
	unsigned suppressed;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (atomic_exchange(&limit->second, (int64_t)now.tv_sec) != now.tv_sec) {
		atomic_store(&limit->lines, 0);
		suppressed = atomic_exchange(&limit->suppressed, 0);
		if (suppressed)
			weft_warn("%u more line%s about %s left out", suppressed,
				  weft_plural(suppressed), limit->of);
	}
	if (atomic_fetch_add(&limit->lines, 1) < LINES_PER_S)
		return true;
	atomic_fetch_add(&limit->suppressed, 1);
	return false;
}

static void write_limited(struct rate_limit *limit, enum weft_log_level level, const char *fmt,
			  va_list ap)
{
	if (level <= level_max && limit_passes(limit))
		write_line(log_fd, level, fmt, ap);
}

void weft_peer_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_limited(&peers, level, fmt, ap);
	va_end(ap);
}

void weft_storage_log(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_limited(&storage, level, fmt, ap);
	va_end(ap);
}
