/* options.c - what is wrong with an option, in one line. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	return weft_nearest(name, names);
}

static int refuse_long(const char *command, const char *word, const struct option *options)
{
	const char *meant = strncmp(word, "--", 2) ? NULL : nearest(word + 2, options);

	if (!meant)
		return weft_cli_usage_error(command, "no option \"%s\"", word);
	fprintf(stderr, "%s: no option \"%s\"; did you mean --%s?\n", command, word, meant);
	return EXIT_USAGE;
}

int weft_cli_wrong_option(char **argv, int result, const struct option *options)
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

int weft_cli_options(int argc, char **argv, const char *letters, const struct option *options,
		     const char *usage, int (*take)(void *arg, int option), void *arg)
{
	int option, taken;

	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (option == 'h')
			return fputs(usage, stdout) < 0 ? EXIT_FAILED : EXIT_OK;
		taken = take(arg, option);
		if (taken <= 0)
			return taken ? EXIT_USAGE : weft_cli_wrong_option(argv, option, options);
	}
	return WEFT_CLI_GO_ON;
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
	struct weft_err doubt = { "" };
	int rc = weft_size_parse(text, bytes);

	/* The largest stands for "all there is". */
	if (rc == 0 && *bytes <= INT64_MAX)
		return 1;
	if (weft_size_doubt(text, &doubt))
		weft_cli_usage_error(command, "--%s: %s", name, doubt.text);
	else
		weft_cli_usage_error(command,
				     "--%s: expected a size such as 4096, 64K or 1G, got \"%s\"",
				     name, text);
	return -1;
}

int weft_cli_set(bool *flag)
{
	*flag = true;
	return 1;
}
