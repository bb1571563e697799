/* cmd_mount.c - weft mount: each namespace of a subsystem as a file. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/detach.h"
#include "cli/mount/mount.h"

#define QUEUES_MAX    1024
#define FUSE_ROOT_INO 1

static const char usage[] =
	"usage: weft mount [OPTION]... URI DIR\n"
	"\n"
	"Shows each namespace of a subsystem as a file in DIR: ns1, ns2, ... Returns when the files\n"
	"are there and serves them in the background until \"fusermount3 -u DIR\".\n"
	"\n"
	"  -f, --foreground    stay; Ctrl-C unmounts. Changes of the connection go to stderr\n"
	"  -r, --read-only     nobody may write\n"
	"      --queues N      I/Os at once, at most (16, and what the target allows)\n"
	"      --allow-other   let other users in, as far as the files' mode lets them; takes\n"
	"                      user_allow_other in /etc/fuse.conf\n"
	"      --mode MODE     of the files (0600)\n" WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"A URI begins with nvme+tcp:// or nvme+rdma://: \"Addresses\" in weft(1).\n"
	"\n"
	"  weft mount nvme+tcp://192.0.2.10/nqn.2026-11.io.weft:default ~/disks\n"
	"  dd if=~/disks/ns1 bs=1M count=1 | file -\n";

enum { OPT_QUEUES = 256, OPT_ALLOW_OTHER, OPT_MODE };

static const struct option options[] = {
	{ "foreground", no_argument, NULL, 'f' },
	{ "read-only", no_argument, NULL, 'r' },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "allow-other", no_argument, NULL, OPT_ALLOW_OTHER },
	{ "mode", required_argument, NULL, OPT_MODE },
	WEFT_HOST_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{},
};

static bool parse_queues(const char *text, uint32_t *queues)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || !value || value > QUEUES_MAX)
		return false;
	*queues = (uint32_t)value;
	return true;
}

/* The owner reads, in any case; nobody runs a disk. */
static bool parse_mode(const char *text, mode_t *mode)
{
	char *end;
	unsigned long value = strtoul(text, &end, 8);

	if (*text < '0' || *text > '7' || *end || value & ~0666ul || !(value & S_IRUSR))
		return false;
	*mode = (mode_t)value;
	return true;
}

static void in_foreground(void *user)
{
}

static void in_background(void *user)
{
	if (chdir("/") < 0) {
		/* Then the directory that it was started in stays in use. */
	}
	weft_detach_done(*(int *)user, -1);
}

static bool is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	bool empty = true;

	while (d && empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

static bool is_fuse_mount(const char *dir, const struct stat *st)
{
	struct statfs fs;

	return st->st_ino == FUSE_ROOT_INO && !statfs(dir, &fs) && fs.f_type == FUSE_SUPER_MAGIC;
}

/* Before anybody is connected to; what libfuse would say of it is worse. */
static int check_directory(const char *name, const char *dir)
{
	struct weft_err err = { "" };
	struct stat st;

	if (stat(dir, &st) < 0)
		weft_fail(&err, -errno, "%s: %s%s", dir, strerror(errno),
			  errno == ENOTCONN ? ": a mount whose program ended; \"fusermount3 -u\" "
					      "removes it" :
					      "");
	else if (!S_ISDIR(st.st_mode))
		weft_fail(&err, -ENOTDIR, "%s is not a directory", dir);
	else if (is_fuse_mount(dir, &st))
		weft_fail(&err, -EBUSY, "%s is mounted on already; \"fusermount3 -u\" unmounts it",
			  dir);
	else if (!is_empty(dir))
		weft_fail(&err, -ENOTEMPTY, "%s is not empty; mount on an empty directory", dir);
	return err.text[0] ? weft_cli_failed(name, err.text) : EXIT_OK;
}

static int mount_it(const char *name, struct weft_mount_options *mount, bool foreground)
{
	_cleanup_(weft_freep) char *dir = weft_cli_absolute_path(mount->dir);
	struct weft_err err = { "" };
	int handle = -1;

	if (!dir)
		return weft_cli_failed(name, strerror(ENOMEM));
	if (check_directory(name, dir) != EXIT_OK)
		return EXIT_FAILED;
	if (!foreground) {
		handle = weft_detach();
		if (handle < 0)
			return weft_cli_failed(name, strerror(-handle));
	}
	mount->dir = dir;
	mount->quiet = !foreground;
	mount->ready = foreground ? in_foreground : in_background;
	mount->user = &handle;
	if (weft_mount_run(mount, &err) < 0)
		return weft_cli_failed(name, err.text);
	return EXIT_OK;
}

/* 0, or the exit status. */
static int take_option(struct weft_mount_options *mount, char **argv, int option)
{
	switch (option) {
	case 'r':
		mount->read_only = true;
		return 0;
	case OPT_ALLOW_OTHER:
		mount->allow_other = true;
		return 0;
	case OPT_MODE:
		if (parse_mode(optarg, &mount->mode))
			return 0;
		return weft_cli_usage_error(
			argv[0],
			"--mode takes an octal number such as 0640, which lets the "
			"owner read and nobody execute, not \"%s\"",
			optarg);
	case OPT_QUEUES:
		if (parse_queues(optarg, &mount->connect.queues))
			return 0;
		return weft_cli_usage_error(argv[0],
					    "--queues takes a number from 1 to %d, not \"%s\"",
					    QUEUES_MAX, optarg);
	}
	switch (weft_host_option(&mount->connect, argv[0], option, optarg)) {
	case 1:
		return 0;
	case 0:
		return weft_cli_wrong_option(argv, option, options);
	default:
		return EXIT_USAGE;
	}
}

int weft_cmd_mount(int argc, char **argv)
{
	struct weft_mount_options mount = { .mode = 0600 };
	bool foreground = false;
	int option, status;

	weft_options_init(&mount.connect);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hfr", options, NULL)) != -1) {
		if (option == 'h')
			return fputs(usage, stdout) < 0 ? EXIT_FAILED : EXIT_OK;
		if (option == 'f') {
			foreground = true;
			continue;
		}
		status = take_option(&mount, argv, option);
		if (status)
			return status;
	}
	if (argc - optind != 2)
		return weft_cli_usage_error(argv[0], "it takes a URI and a directory");
	mount.uri = argv[optind];
	weft_host_apply_limits(mount.uri, &mount.connect);
	mount.dir = argv[optind + 1];
	return mount_it(argv[0], &mount, foreground);
}
