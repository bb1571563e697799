/* cli.h - the commands. Each is one file: cmd_NAME.c. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nearest.h"

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* the last line on stderr says why, and what to do */
	EXIT_USAGE = 2,  /* it was called in a wrong way */
	WEFT_CLI_GO_ON = -1,
};

struct weft_command {
	const char *name, *help;
	/* argv[0] is "weft NAME". Returns the exit status. */
	int (*run)(int argc, char **argv);
};

int weft_cmd_serve(int argc, char **argv);
int weft_cmd_ctl(int argc, char **argv);
int weft_cmd_discover(int argc, char **argv);
int weft_cmd_ls(int argc, char **argv);
int weft_cmd_id(int argc, char **argv);
int weft_cmd_log(int argc, char **argv);
int weft_cmd_feature(int argc, char **argv);
int weft_cmd_resv(int argc, char **argv);
int weft_cmd_read(int argc, char **argv);
int weft_cmd_write(int argc, char **argv);
int weft_cmd_compare(int argc, char **argv);
int weft_cmd_zero(int argc, char **argv);
int weft_cmd_trim(int argc, char **argv);
int weft_cmd_cp(int argc, char **argv);
int weft_cmd_bench(int argc, char **argv);
int weft_cmd_raw(int argc, char **argv);
int weft_cmd_mount(int argc, char **argv);
int weft_cmd_version(int argc, char **argv);

/* "weft NAME: sentence", and where to read more; returns EXIT_USAGE. */
int weft_cli_usage_error(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints that there is no @what "@word", and the nearest of @names, NULL at the end; EXIT_USAGE. */
int weft_cli_unknown(const char *command, const char *what, const char *word,
		     const char *const *names);
/* "weft NAME: sentence"; returns EXIT_FAILED. */
int weft_cli_failed(const char *command, const char *sentence);
/* The last call of a command; besides main(), only commands that do not return call it: checks that
 * all of standard output could be written. Returns the exit status, @status unless that failed. */
int weft_cli_end(const char *command, int status);
/* Writes buffered output now; weft_cli_end() reports its errors. */
void weft_cli_flush(void);

struct option;
/* For getopt_long() with opterr 0 and a ":" before its letters: prints what is wrong with the
 * option that made it return @result. Values of @options that are letters are those of short
 * options. */
int weft_cli_wrong_option(char **argv, int result, const struct option *options);
/* Passes every option to @take: 1: taken; 0: unknown; -1: its value is wrong, and that was printed.
 * Returns WEFT_CLI_GO_ON, or the status to end with: after -h, which shows @usage, or a mistake. */
int weft_cli_options(int argc, char **argv, const char *letters, const struct option *options,
		     const char *usage, int (*take)(void *arg, int option), void *arg);

/* Whether @text is a number up to @max, also 0x…. */
bool weft_cli_is_number(const char *text, uint64_t max, uint64_t *value);
/* 1: @text is such a number for --NAME; -1: it is not, and that was printed. */
int weft_cli_number(const char *command, const char *name, const char *text, uint64_t max,
		    uint64_t *value);

/* A length that was not given: all there is. */
#define WEFT_CLI_ALL UINT64_MAX
/* 1: @text is a size for --NAME; -1: it is not, and that was printed. */
int weft_cli_size(const char *command, const char *name, const char *text, uint64_t *bytes);
/* For an option without a value: returns 1, it is taken. */
int weft_cli_set(bool *flag);

/* @path, behind the working directory if it is relative; NULL: no memory. The caller frees it. */
char *weft_cli_absolute_path(const char *path);

#endif
