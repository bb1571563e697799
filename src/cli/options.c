/* options.c - options of a command, from its table; what is wrong with one is said in one line. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/size.h"
#include "cli/cli.h"

#define OPTIONS_MAX 32

static const struct option *find_value(const struct option *options, int value)
{
	for (; options->name; options++) {
		if (options->val == value)
			return options;
	}
	return NULL;
}

static const char *nearest(const char *word, const struct option *options)
{
	const char *names[OPTIONS_MAX + 1] = { NULL };
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; options[i].name && i < OPTIONS_MAX; i++)
		names[i] = options[i].name;
	return weft_suggest_word(name, names);
}

static int refuse_long(const char *command, const char *word, const struct option *options)
{
	const char *meant = strncmp(word, "--", 2) ? NULL : nearest(word + 2, options);

	if (!meant)
		return weft_cli_usage_error(command, "no option \"%s\"", word);
	fprintf(stderr, "%s: no option \"%s\"; did you mean --%s?\n", command, word, meant);
	return EXIT_USAGE;
}

static int wrong_option(char **argv, int result, const struct option *options)
{
	const char *word = argv[optind - 1];
	const struct option *known = optopt ? find_value(options, optopt) : NULL;

	if (result == ':')
		return weft_cli_usage_error(argv[0], "%s needs a value", word);
	if (known)
		return weft_cli_usage_error(argv[0], "--%s takes no value", known->name);
	if (optopt)
		return weft_cli_usage_error(argv[0], "no option \"-%c\"", optopt);
	return refuse_long(argv[0], word, options);
}

/* --- getopt's form of the table --------------------------------------------------------------- */

enum { ROW = 256 }; /* + index: the value of an option without a letter */

struct getopt_form {
	struct option options[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 2]; /* ":" first: a missing value is told from the rest */
};

static void add_to_form(struct getopt_form *form, size_t i, const char *name, char letter,
			bool has_value)
{
	size_t end = strlen(form->letters);

	assert(i < OPTIONS_MAX);
	form->options[i] = (struct option){ .name = name,
					    .has_arg = has_value ? required_argument : no_argument,
					    .val = letter ? letter : ROW + (int)i };
	if (!letter)
		return;
	form->letters[end++] = letter;
	if (has_value)
		form->letters[end] = ':';
}

static void make_form(struct getopt_form *form, const struct weft_cli_option *options, bool help)
{
	size_t count = 0;

	*form = (struct getopt_form){ .letters = ":" };
	for (; options[count].name; count++)
		add_to_form(form, count, options[count].name, options[count].letter,
			    options[count].has_value);
	if (help)
		add_to_form(form, count, "help", 'h', false);
}

/* NULL: getopt did not know it. */
static const struct weft_cli_option *find_row(const struct weft_cli_option *options, int value)
{
	if (value >= ROW)
		return &options[value - ROW];
	while (options->name && options->letter != value)
		options++;
	return options->name ? options : NULL;
}

int weft_cli_options(int argc, char **argv, const struct weft_cli_option *options,
		     const char *usage, void *arg)
{
	const struct weft_cli_option *row;
	struct getopt_form form;
	int option;

	make_form(&form, options, usage);
	opterr = 0;
	while ((option = getopt_long(argc, argv, form.letters, form.options, NULL)) != -1) {
		if (usage && option == 'h')
			return fputs(usage, stdout) < 0 ? EXIT_FAILED : EXIT_OK;
		row = find_row(options, option);
		if (!row)
			return wrong_option(argv, option, form.options);
		if (row->given)
			*(bool *)((char *)arg + row->given) = true;
		if (row->take(argv[0], row, optarg, (char *)arg + row->to) < 0)
			return EXIT_USAGE;
	}
	return WEFT_CLI_GO_ON;
}

/* --- values ----------------------------------------------------------------------------------- */

int weft_cli_take_flag(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	*(bool *)to = true;
	return 1;
}

int weft_cli_take_text(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	*(const char **)to = value;
	return 1;
}

int weft_cli_take_number(const char *command, const struct weft_cli_option *option,
			 const char *value, void *to)
{
	return weft_cli_number(command, option->name, value, option->max, to);
}

int weft_cli_take_size(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	return weft_cli_size(command, option->name, value, to);
}

bool weft_cli_is_number(const char *text, uint64_t max, uint64_t *value)
{
	int base = !strncasecmp(text, "0x", 2) ? 16 : 10;
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, base);
	if (!isdigit((unsigned char)*text) || *end || errno || number > max)
		return false;
	*value = number;
	return true;
}

int weft_cli_number(const char *command, const char *name, const char *text, uint64_t max,
		    uint64_t *value)
{
	if (weft_cli_is_number(text, max, value))
		return 1;
	weft_cli_usage_error(command, "--%s: expected a number up to %" PRIu64 ", got \"%s\"", name,
			     max, text);
	return -1;
}

int weft_cli_size(const char *command, const char *name, const char *text, uint64_t *bytes)
{
	struct weft_err why = { "" };
	int rc = weft_size_parse(text, bytes);

	/* The largest stands for "all there is". */
	if (rc == 0 && *bytes <= INT64_MAX)
		return 1;
	if (weft_size_is_ambiguous(text, &why))
		weft_cli_usage_error(command, "--%s: %s", name, why.text);
	else
		weft_cli_usage_error(command,
				     "--%s: expected a size such as 4096, 64K or 1G, got \"%s\"",
				     name, text);
	return -1;
}

char *weft_cli_absolute_path(const char *path)
{
	char cwd[PATH_MAX], *text;

	if (!path[0] || path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return strdup(path);
	return asprintf(&text, "%s/%s", cwd, path) < 0 ? NULL : text;
}
