/* test_durable_name.c - a file that a loss of power takes away holds nothing: the directory that has
 * its name is synced before anybody relies on what is in it.
 *
 * fsync() is wrapped to see which directory that was, and to fail when told to; pwrite() to see that
 * it came first. */
#include "reactor_case.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "store/store.h"
#include "running.h"

static char here[64], there[80];

/* --- what is synced --------------------------------------------------------------------------- */

static struct {
	ino_t wanted; /* the directory that has the name */
	bool synced;
	unsigned writes_before;
	int error; /* of every sync of a directory */
} disk;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (!S_ISDIR(st.st_mode))
		return __real_fsync(fd);
	if (disk.error) {
		errno = disk.error;
		return -1;
	}
	disk.synced |= st.st_ino == disk.wanted;
	return __real_fsync(fd);
}

ssize_t __real_pwrite64(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at)
{
	disk.writes_before += !disk.synced;
	return __real_pwrite64(fd, buf, size, at);
}

/* --- what is opened --------------------------------------------------------------------------- */

static int open_image(const char *path, struct weft_err *err)
{
	struct weft_backend *be;
	struct weft_spec spec;
	char text[200];
	int rc;

	snprintf(text, sizeof(text), "file:%s,size=1M", path);
	assert_int_equal(weft_spec_parse(text, &spec, err), 0);
	rc = weft_backend_open(&be, &spec, err);
	if (rc == 0)
		weft_backend_close(be);
	return rc;
}

static void was_closed(void *arg)
{
	*(bool *)arg = true;
}

static int open_state(const char *path, struct weft_err *err)
{
	char spec[200];
	struct weft_store_options options = {
		.control_reactor = r, .spec = spec, .node = 1, .nodes = 2
	};
	struct weft_store *store;
	bool over = false;
	int rc;

	snprintf(spec, sizeof(spec), "file:%s", path);
	rc = weft_store_open(&store, &options, err);
	if (rc < 0)
		return rc;
	weft_store_close(store, was_closed, &over);
	while (!over)
		weft_reactor_turn(r, -1);
	return 0;
}

static const struct {
	const char *name;
	int (*open)(const char *path, struct weft_err *err);
	bool exists; /* made by one who was killed before it had synced its name, perhaps */
	bool link;   /* what was opened is a link to it, in another directory */
} files[] = {
	{ "a new image", open_image, false, false },
	{ "an image", open_image, true, false },
	{ "an image behind a link", open_image, true, true },
	{ "a new state", open_state, false, false },
	{ "a state", open_state, true, false },
	{ "a new state behind a link", open_state, false, true },
	{ "a state behind a link", open_state, true, true },
};

static void make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void prepare(const char *path, const char *link, bool exists)
{
	struct stat st;

	unlink(path);
	unlink(link);
	if (exists)
		make_file(path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(stat(there, &st), 0);
	memset(&disk, 0, sizeof(disk));
	disk.wanted = st.st_ino;
}

/* --- cases ------------------------------------------------------------------------------------ */

static void its_directory_is_synced(void **state)
{
	char path[100], link[100];

	snprintf(path, sizeof(path), "%s/file", there);
	snprintf(link, sizeof(link), "%s/link", here);
	for_each_named(i, files, name) {
		struct weft_err err = { "" };

		prepare(path, link, files[i].exists);
		if (files[i].open(files[i].link ? link : path, &err) < 0)
			fail_msg("%s: %s", files[i].name, err.text);
		if (!disk.synced || disk.writes_before)
			fail_msg("%s: synced %d, %u writes before", files[i].name, disk.synced,
				 disk.writes_before);
	}
	unlink(path);
	unlink(link);
}

/* Who may not open the directory has made nothing there, and a file system that cannot sync one
 * keeps an image that it had. */
static void what_cannot_be_synced_is_refused(void **state)
{
	static const struct {
		const char *name;
		int (*open)(const char *path, struct weft_err *err);
		bool exists;
		int error;
		bool refused;
	} cases[] = {
		{ "a new image", open_image, false, EIO, true },
		{ "a new image, forbidden", open_image, false, EACCES, true },
		{ "an image", open_image, true, EIO, true },
		{ "an image, forbidden", open_image, true, EACCES, false },
		{ "an image, not possible", open_image, true, EINVAL, false },
		{ "a new state", open_state, false, EIO, true },
		{ "a state", open_state, true, EIO, true },
		{ "a state, forbidden", open_state, true, EACCES, true },
	};
	char path[100], link[100];

	snprintf(path, sizeof(path), "%s/file", there);
	snprintf(link, sizeof(link), "%s/link", here);
	for_each_named(i, cases, name) {
		struct weft_err err = { "" };
		int rc;

		prepare(path, link, cases[i].exists);
		disk.error = cases[i].error;
		rc = cases[i].open(path, &err);
		if (rc != (cases[i].refused ? -cases[i].error : 0) || disk.writes_before ||
		    !strstr(err.text, rc ? "cannot sync its directory" : ""))
			fail_msg("%s: %d, %u writes: %s", cases[i].name, rc, disk.writes_before,
				 err.text);
		disk.error = 0;
		assert_int_equal(cases[i].open(path, &err), 0); /* nothing is in its way */
	}
	unlink(path);
	unlink(link);
}

static int open_case(void **state)
{
	const char *dir = getenv("TMPDIR");

	snprintf(here, sizeof(here), "%s/weft-name-XXXXXX", dir ? dir : "/tmp");
	if (!mkdtemp(here))
		return -1;
	snprintf(there, sizeof(there), "%s/there", here);
	return mkdir(there, 0700) < 0 ? -1 : open_engine(WEFT_ENGINE_EPOLL);
}

static int close_case(void **state)
{
	rmdir(there);
	rmdir(here);
	return close_engine(state);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_case, close_case)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(its_directory_is_synced),
		CASE(what_cannot_be_synced_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
