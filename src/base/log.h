/* log.h - one line per event that an operator should know of. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include "base/err.h"

enum weft_log_level { WEFT_LOG_ERROR, WEFT_LOG_WARN, WEFT_LOG_INFO, WEFT_LOG_DEBUG };

/* Lines above @level are dropped. Set once, before threads start. */
void weft_log_set_level(enum weft_log_level level);

/* Lines go to the end of the file @path instead of standard error. Before threads start. */
int weft_log_to(const char *path, struct weft_err *err);
/* The file was renamed: opens a new one of that name. After weft_log_to(). */
int weft_log_reopen(struct weft_err *err);
int weft_log_fd(void);

void weft_log(enum weft_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* An error that ends the process: also on standard error, whose last line says why. */
void weft_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Rate limited: some lines per second each, then only a count of what was suppressed. Peers and
 * storage have limits of their own: a peer cannot hide what storage reports. */
void weft_peer_log(enum weft_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void weft_storage_log(enum weft_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define weft_error(...) weft_log(WEFT_LOG_ERROR, __VA_ARGS__)
#define weft_warn(...)  weft_log(WEFT_LOG_WARN, __VA_ARGS__)
#define weft_info(...)  weft_log(WEFT_LOG_INFO, __VA_ARGS__)
#define weft_debug(...) weft_log(WEFT_LOG_DEBUG, __VA_ARGS__)

#endif
