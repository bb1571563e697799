/* test_pidfile.c - the pid file, while another process removes it, and on a disk that is full. What
 * a takeover does with it is func/cli: a takeover. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/pidfile.h"

static char path[] = "/tmp/weft-pidfile-XXXXXX";
static unsigned removals, writes; /* before a write the file is removed, as often as is left */
static size_t write_max;          /* bytes that the next write takes; 0: all */
static int error;                 /* of the write after that; 0: none */

ssize_t __real_pwrite64(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at);

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at)
{
	size_t most = write_max;

	writes++;
	if (removals) {
		removals--;
		assert_int_equal(unlink(path), 0);
	}
	if (error && !most) {
		errno = error;
		return -1;
	}
	write_max = 0;
	errno = 0; /* as it may be after a write that was not refused, but short */
	return __real_pwrite64(fd, buf, most ? most : size, at);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 || close(fd) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	return unlink(path);
}

static void has_our_pid(void)
{
	FILE *file = fopen(path, "r");
	char text[32] = "", want[32];

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	assert_string_equal(text, want);
	fclose(file);
}

static void removed_meanwhile(void **state)
{
	removals = 3;
	assert_int_equal(weft_pidfile_write(path, NULL), 0);
	assert_int_equal(removals, 0);
	has_our_pid();
}

static void removed_again_and_again(void **state)
{
	struct weft_err err = { "" };

	removals = 1000;
	writes = 0;
	assert_int_equal(weft_pidfile_write(path, &err), -ESTALE);
	assert_non_null(strstr(err.text, "another process keeps removing it"));
	assert_in_range(writes, 2, 20);
	removals = 0;
	assert_int_equal(weft_pidfile_write(path, NULL), 0);
}

static void short_write(void **state)
{
	write_max = 1;
	assert_int_equal(weft_pidfile_write(path, NULL), 0);
	has_our_pid();
}

static void disk_full(void **state)
{
	struct weft_err err = { "" };

	write_max = 1;
	error = ENOSPC;
	assert_int_equal(weft_pidfile_write(path, &err), -ENOSPC);
	assert_non_null(strstr(err.text, strerror(ENOSPC)));
	error = 0;
	assert_int_equal(weft_pidfile_write(path, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_meanwhile),
		cmocka_unit_test(removed_again_and_again),
		cmocka_unit_test(short_write),
		cmocka_unit_test(disk_full),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
