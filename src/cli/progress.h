/* progress.h - a bar with rate and time left, on standard error, if that is a terminal.
 *
 *   copying  ████████████▌               52%  2.1 GiB of 4 GiB  812 MiB/s  0:02 */
#ifndef WEFT_CLI_PROGRESS_H
#define WEFT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_progress {
	const char *what;
	uint64_t total; /* 0: not known */
	uint64_t done;
	bool on;                /* there is a terminal, and somebody wants to see it */
	bool unicode;           /* the terminal understands UTF-8 */
	double start_s, seen_s; /* when it began, when it was last drawn */
	uint64_t seen;          /* what was done then */
	double rate;            /* bytes per second, smoothed */
};

/* Whether the user's locale can show more than ASCII. */
bool weft_utf8_locale(void);

void weft_progress_start(struct weft_progress *p, const char *what, uint64_t total, bool quiet);
/* Draws it again; call it a few times a second. */
void weft_progress_show(struct weft_progress *p, uint64_t done);
/* Takes the bar off the screen, before something else is printed and at the end. */
void weft_progress_clear(struct weft_progress *p);
/* The line itself, without colours or movement; for weft_progress_show() and for tests. */
void weft_progress_line(const struct weft_progress *p, unsigned columns, char *line, size_t size);

/* Shows @text instead of the last line on the terminal that standard error is, cut to its width;
 * "" takes it away. */
void weft_status_line(const char *text);
/* Cuts @text to @columns characters. */
void weft_status_cut(char *text, unsigned columns);

/* Seconds on a clock that does not jump. */
double weft_now_s(void);

#endif
