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

struct starting {
	struct weft_path_wait waiting; /* until it is mounted */
	int handle;                    /* of weft_detach() */
};

static void in_foreground(void *user)
{
	struct starting *starting = user;

	weft_path_wait_end(&starting->waiting);
}

static void in_background(void *user)
{
	struct starting *starting = user;

	weft_path_wait_end(&starting->waiting);
	if (chdir("/") < 0) {
		/* Then the directory that it was started in stays in use. */
	}
	weft_detach_done(starting->handle, -1);
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

static const char *advice_on_dir(int why)
{
	return why == ENOTCONN ? ": a mount whose program ended; \"fusermount3 -u\" removes it" :
	       why == ENOENT   ? "; \"mkdir -p\" makes it" :
				 "";
}

/* Before anybody is connected to; what libfuse would say of it is worse. */
static int check_directory(const char *name, const char *dir)
{
	struct weft_err err = { "" };
	struct stat st;

	if (stat(dir, &st) < 0)
		weft_fail(&err, -errno, "%s: %s%s", dir, strerror(errno), advice_on_dir(errno));
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
	struct starting starting = { .handle = -1 };
	struct weft_err err = { "" }, why = { "" };
	int rc;

	if (!dir)
		return weft_cli_failed(name, strerror(ENOMEM));
	if (check_directory(name, dir) != EXIT_OK)
		return EXIT_FAILED;
	if (!foreground) {
		starting.handle = weft_detach();
		if (starting.handle < 0)
			return weft_cli_failed(name, strerror(-starting.handle));
	}
	mount->dir = dir;
	mount->quiet = !foreground;
	mount->ready = foreground ? in_foreground : in_background;
	mount->user = &starting;
	weft_host_path_wait(&starting.waiting, name, mount->uri, &mount->connect, NULL, NULL);
	rc = weft_mount_run(mount, &why);
	weft_path_wait_end(&starting.waiting);
	if (rc == 0)
		return EXIT_OK;
	weft_host_fail_connect(mount->uri, rc, &why, &err);
	return weft_cli_failed(name, err.text);
}

/* --- options ---------------------------------------------------------------------------------- */

static int take_queues(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	char *end;
	unsigned long queues;

	errno = 0;
	queues = strtoul(value, &end, 10);
	if (errno || *end || end == value || *value == '-' || !queues || queues > QUEUES_MAX) {
		weft_cli_usage_error(command, "--queues takes a number from 1 to %d, not \"%s\"",
				     QUEUES_MAX, value);
		return -1;
	}
	*(uint32_t *)to = (uint32_t)queues;
	return 1;
}

/* The owner reads, in any case; nobody runs a disk. */
static int take_mode(const char *command, const struct weft_cli_option *option, const char *value,
		     void *to)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (*value < '0' || *value > '7' || *end || mode & ~0666ul || !(mode & S_IRUSR)) {
		weft_cli_usage_error(command,
				     "--mode takes an octal number such as 0640, which lets the "
				     "owner read and nobody execute, not \"%s\"",
				     value);
		return -1;
	}
	*(mode_t *)to = (mode_t)mode;
	return 1;
}

struct mount_command {
	struct weft_mount_options mount;
	bool foreground;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("foreground", 'f', struct mount_command, foreground),
	WEFT_CLI_FLAG("read-only", 'r', struct mount_command, mount.read_only),
	WEFT_CLI_OWN("queues", take_queues,
		     .to = WEFT_CLI_AT(struct mount_command, mount.connect.queues, uint32_t)),
	WEFT_CLI_FLAG("allow-other", 0, struct mount_command, mount.allow_other),
	WEFT_CLI_OWN("mode", take_mode,
		     .to = WEFT_CLI_AT(struct mount_command, mount.mode, mode_t)),
	WEFT_HOST_OPTIONS(struct mount_command, mount.connect),
	{},
};

int weft_cmd_mount(int argc, char **argv)
{
	struct mount_command command = { .mount.mode = 0600 };
	struct weft_mount_options *mount = &command.mount;
	int status;

	weft_options_init(&mount->connect);
	status = weft_cli_options(argc, argv, options, usage, &command);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (argc - optind != 2)
		return weft_cli_usage_error(argv[0], "expected URI and DIR, as in \"weft mount "
						     "nvme+tcp://127.0.0.1:4420/NQN DIR\"");
	mount->uri = argv[optind];
	status = weft_host_check(argv[0], mount->uri, &mount->connect, 0, NULL);
	if (status != EXIT_OK)
		return status;
	weft_host_apply_limits(mount->uri, &mount->connect);
	mount->dir = argv[optind + 1];
	return mount_it(argv[0], mount, command.foreground);
}
