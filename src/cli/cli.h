/* cli.h - the commands. Each is one file: cmd_NAME.c. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/suggest.h"

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

/* --- options ---------------------------------------------------------------------------------- */

struct weft_cli_option;
/* For an option's @value (NULL: it takes none): 1, or -1 after it was printed what is wrong with
 * it. @to: what the option sets. */
typedef int weft_cli_take(const char *command, const struct weft_cli_option *option,
			  const char *value, void *to);

/* How an option is written, and where its value goes: a row of a command's table, which ends with
 * {}. */
struct weft_cli_option {
	const char *name; /* of --NAME */
	char letter;      /* of -L; 0: there is none */
	bool has_value;
	weft_cli_take *take;
	size_t to;         /* offset in the struct of the command's options */
	uint64_t min, max; /* of a number; take() may know better what they are */
	size_t given;      /* offset of a bool: the option was given; 0: nobody asks */
};

weft_cli_take weft_cli_take_flag;   /* a bool becomes true */
weft_cli_take weft_cli_take_text;   /* const char * */
weft_cli_take weft_cli_take_number; /* uint64_t, up to @max; as weft_cli_number() */
weft_cli_take weft_cli_take_size;   /* uint64_t; as weft_cli_size() */

/* The offset of @member of @type, which has to be a @kind. */
#define WEFT_CLI_AT(type, member, kind) \
	(offsetof(type, member) + 0 * sizeof(&((type *)0)->member == (kind *)0))

#define WEFT_CLI_FLAG(name_, letter_, type, member)                           \
	{                                                                     \
		.name = name_, .letter = letter_, .take = weft_cli_take_flag, \
		.to = WEFT_CLI_AT(type, member, bool)                         \
	}
#define WEFT_CLI_TEXT(name_, letter_, type, member)                                              \
	{                                                                                        \
		.name = name_, .letter = letter_, .has_value = true, .take = weft_cli_take_text, \
		.to = WEFT_CLI_AT(type, member, const char *)                                    \
	}
#define WEFT_CLI_NUMBER(name_, letter_, type, member, max_, ...)                                   \
	{                                                                                          \
		.name = name_, .letter = letter_, .has_value = true, .take = weft_cli_take_number, \
		.max = max_, .to = WEFT_CLI_AT(type, member, uint64_t), __VA_ARGS__                \
	}
#define WEFT_CLI_SIZE(name_, type, member, ...)                               \
	{                                                                     \
		.name = name_, .has_value = true, .take = weft_cli_take_size, \
		.to = WEFT_CLI_AT(type, member, uint64_t), __VA_ARGS__        \
	}
#define WEFT_CLI_OWN(name_, take_, ...)                                      \
	{                                                                    \
		.name = name_, .has_value = true, .take = take_, __VA_ARGS__ \
	}
/* With WEFT_CLI_NUMBER(), WEFT_CLI_SIZE(): a bool that says that the option was given. */
#define WEFT_CLI_GIVEN(type, member) .given = WEFT_CLI_AT(type, member, bool)

/* Passes every option to its row, with @to in @arg. Returns WEFT_CLI_GO_ON, or the status to end
 * with: after -h, which shows @usage, or a mistake, which was printed. Without @usage -h is an
 * option as any other. */
int weft_cli_options(int argc, char **argv, const struct weft_cli_option *options,
		     const char *usage, void *arg);

/* Whether @text is a number up to @max, also 0x…. */
bool weft_cli_is_number(const char *text, uint64_t max, uint64_t *value);
/* 1: @text is such a number for --NAME; -1: it is not, and that was printed. */
int weft_cli_number(const char *command, const char *name, const char *text, uint64_t max,
		    uint64_t *value);

/* A length that was not given: all there is. */
#define WEFT_CLI_ALL UINT64_MAX
/* 1: @text is a size for --NAME; -1: it is not, and that was printed. */
int weft_cli_size(const char *command, const char *name, const char *text, uint64_t *bytes);

/* @path, behind the working directory if it is relative; NULL: no memory. The caller frees it. */
char *weft_cli_absolute_path(const char *path);

#endif
