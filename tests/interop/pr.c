/* pr.c - persistent reservations by the ioctls that Linux has for every block device.
 *
 *   pr DEVICE register OWN NEW       OWN 0: not registered yet
 *   pr DEVICE reserve|release OWN TYPE
 *   pr DEVICE preempt|abort OWN VICTIM TYPE
 *   pr DEVICE clear OWN
 *
 * Types are NVMe's numbers, which are the kernel's. The exit status is 0, or 1 after a line that
 * says what the device answered. */
#include <fcntl.h>
#include <linux/pr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
	CONFLICT = 0x18
}; /* SAM's status, which the kernel answers with whatever the transport is */

struct words {
	__u64 own, second;
	unsigned type;
};

static int do_register(int fd, const struct words *w)
{
	struct pr_registration arg = { .old_key = w->own, .new_key = w->second };

	return ioctl(fd, IOC_PR_REGISTER, &arg);
}

static int do_reserve(int fd, const struct words *w)
{
	struct pr_reservation arg = { .key = w->own, .type = (__u32)w->second };

	return ioctl(fd, IOC_PR_RESERVE, &arg);
}

static int do_release(int fd, const struct words *w)
{
	struct pr_reservation arg = { .key = w->own, .type = (__u32)w->second };

	return ioctl(fd, IOC_PR_RELEASE, &arg);
}

/* The kernel's NVMe host sends old_key as the caller's own, new_key as the one to preempt. */
static struct pr_preempt preempt_words(const struct words *w)
{
	return (struct pr_preempt){ .old_key = w->own, .new_key = w->second, .type = w->type };
}

static int do_preempt(int fd, const struct words *w)
{
	struct pr_preempt arg = preempt_words(w);

	return ioctl(fd, IOC_PR_PREEMPT, &arg);
}

static int do_abort(int fd, const struct words *w)
{
	struct pr_preempt arg = preempt_words(w);

	return ioctl(fd, IOC_PR_PREEMPT_ABORT, &arg);
}

static int do_clear(int fd, const struct words *w)
{
	struct pr_clear arg = { .key = w->own };

	return ioctl(fd, IOC_PR_CLEAR, &arg);
}

static const struct {
	const char *name;
	int (*run)(int fd, const struct words *w);
	int words;
} actions[] = {
	{ "register", do_register, 2 }, { "reserve", do_reserve, 2 }, { "release", do_release, 2 },
	{ "preempt", do_preempt, 3 },   { "abort", do_abort, 3 },     { "clear", do_clear, 1 },
};

static int answer(int rc)
{
	if (rc < 0)
		perror("pr");
	else if (rc == CONFLICT)
		puts("reservation conflict");
	else if (rc)
		printf("status %#x\n", (unsigned)rc);
	return rc != 0;
}

int main(int argc, char **argv)
{
	struct words w = {};
	int fd;

	if (argc < 4)
		return 2;
	w.own = strtoull(argv[3], NULL, 0);
	w.second = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
	w.type = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	fd = open(argv[1], O_RDWR);
	if (fd < 0)
		return answer(fd);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (!strcmp(argv[2], actions[i].name) && argc == 3 + actions[i].words)
			return answer(actions[i].run(fd, &w));
	}
	return 2;
}
