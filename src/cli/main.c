/* main.c - the table of commands, and what `weft` says about them. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#include "base/utf8.h"
#include "cli/cli.h"

static int cmd_help(int argc, char **argv);

static const struct weft_command commands[] = {
	{ "serve", "export storage over TCP or RDMA, with a discovery service", weft_cmd_serve },
	{ "ctl", "look at a running target, and change it", weft_cmd_ctl },
	{ "discover", "what a discovery service knows of", weft_cmd_discover },
	{ "ls", "subsystems, controllers and namespaces, as a tree", weft_cmd_ls },
	{ "id", "identify a controller and a namespace, decoded", weft_cmd_id },
	{ "log", "a log page: health, errors, ANA, effects of commands", weft_cmd_log },
	{ "feature", "what a controller is set to; set it", weft_cmd_feature },
	{ "resv", "reservations of a namespace", weft_cmd_resv },
	{ "read", "read a range of a namespace", weft_cmd_read },
	{ "write", "write a range of a namespace", weft_cmd_write },
	{ "compare", "compare a range of a namespace with a file or pipe", weft_cmd_compare },
	{ "zero", "write zeroes to a range of a namespace", weft_cmd_zero },
	{ "trim", "deallocate a range of a namespace", weft_cmd_trim },
	{ "cp", "copy between files, pipes and namespaces", weft_cmd_cp },
	{ "mount", "namespaces as files", weft_cmd_mount },
	{ "raw", "any command, as it is", weft_cmd_raw },
	{ "bench", "load a namespace: IOPS, bandwidth, latency; or verify it", weft_cmd_bench },
	{ "version", "the version, and what is built in", weft_cmd_version },
	{ "help", "this text, or that of a command: weft help COMMAND", cmd_help },
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *to)
{
	fprintf(to,
		"weft %s - NVMe over Fabrics in user space\n\n"
		"usage: weft COMMAND [OPTION]...\n\ncommands:\n",
		weft_version());
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].help);
	fprintf(to, "\nEvery command has --help. A first try:\n\n  weft serve --ns mem:1G\n");
}

static const struct weft_command *find_command(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int refuse_command(const char *name)
{
	const char *names[NCOMMANDS + 1] = { NULL }, *nearest;

	for (size_t i = 0; i < NCOMMANDS; i++)
		names[i] = commands[i].name;
	nearest = weft_suggest_word(name, names);
	if (!strcmp(name, "umount") || !strcmp(name, "unmount"))
		fprintf(stderr, "weft: no command \"%s\"; unmount with \"fusermount3 -u DIR\"\n",
			name);
	else if (nearest)
		fprintf(stderr, "weft: no command \"%s\"; did you mean \"weft %s\"?\n", name,
			nearest);
	else
		fprintf(stderr, "weft: no command \"%s\"; \"weft --help\" lists them\n", name);
	return EXIT_USAGE;
}

static int run_command(const struct weft_command *command, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "weft %s", command->name);
	argv[0] = name;
	return weft_cli_end(name, command->run(argc, argv));
}

static int cmd_help(int argc, char **argv)
{
	char flag[] = "--help", *words[] = { argv[0], flag, NULL };
	const struct weft_command *command;

	if (argc < 2 || argv[1][0] == '-') {
		print_usage(stdout);
		return weft_cli_end("weft", EXIT_OK);
	}
	command = find_command(argv[1]);
	return command ? run_command(command, 2, words) : refuse_command(argv[1]);
}

int weft_cli_usage_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; see \"%s --help\"\n", command);
	return EXIT_USAGE;
}

int weft_cli_unknown(const char *command, const char *what, const char *word,
		     const char *const *names)
{
	const char *nearest = weft_suggest_word(word, names);

	if (nearest)
		return weft_cli_usage_error(command, "no %s \"%s\"; did you mean %s?", what, word,
					    nearest);
	return weft_cli_usage_error(command, "no %s \"%s\"", what, word);
}

int weft_cli_failed(const char *command, const char *sentence)
{
	char seen[2048];

	/* What a daemon says is fit to be seen already. */
	if (!weft_utf8_printable(sentence)) {
		weft_utf8_show(seen, sizeof(seen), sentence);
		sentence = seen;
	}
	fprintf(stderr, "%s: %s\n", command, sentence);
	return EXIT_FAILED;
}

static int output_errno; /* of the first write that failed: the last one may find nothing to do */

void weft_cli_flush(void)
{
	if (fflush(stdout) && !output_errno)
		output_errno = errno;
}

/* A reader that has gone away wants no more, and no word about it: as if SIGPIPE had ended us. */
int weft_cli_end(const char *command, int status)
{
	weft_cli_flush();
	if (!output_errno && !ferror(stdout))
		return status;
	if (output_errno == EPIPE)
		return 128 + SIGPIPE;
	if (status != EXIT_OK)
		return status;
	fprintf(stderr, "%s: standard output: %s\n", command,
		strerror(output_errno ? output_errno : EIO));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const struct weft_command *command;

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help(1, argv);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return run_command(find_command("version"), 1, argv + 1);
	command = find_command(argv[1]);
	return command ? run_command(command, argc - 1, argv + 1) : refuse_command(argv[1]);
}
