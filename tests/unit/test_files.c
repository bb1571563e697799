/* test_files.c - what a name leads to (base/chase.h), and files that are made (base/draft.h):
 *
 *   dir/       file, link ─▶ file, up ─▶ .., loop ─▶ loop, dangling ─▶ sub/new, sub/
 *   dir/all/   everybody can write here; the neighbour has been here
 *
 * What writers do with it is func/host_neighbours. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/chase.h"
#include "base/draft.h"
#include "running.h"

enum { NEIGHBOUR = 65534 };

static char dir[] = "/tmp/weft-files-XXXXXX";

static void make_file(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void of_neighbour(const char *name)
{
	if (!geteuid())
		assert_int_equal(lchown(name, NEIGHBOUR, NEIGHBOUR), 0);
}

static int set_up(void **state)
{
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	make_file("file");
	assert_int_equal(symlink("file", "link") | symlink("..", "up") | symlink("loop", "loop") |
				 symlink("sub/new", "dangling") | mkdir("sub", 0755) |
				 mkdir("all", 0755) | chmod("all", 0777),
			 0);
	make_file("all/ours");
	make_file("all/theirs");
	make_file("all/twice");
	assert_int_equal(link("all/twice", "all/again") | symlink("ours", "all/link") |
				 symlink("../file", "all/trap") | mkdir("all/folder", 0755) |
				 symlink("../sub", "all/way"),
			 0);
	of_neighbour("all/theirs");
	of_neighbour("all/trap");
	of_neighbour("all/folder");
	of_neighbour("all/way");
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* --- chase ------------------------------------------------------------------------------------ */

static const struct {
	const char *path;
	int rc;
	bool there;
	const char *leads_to; /* from the folder on */
} paths[] = {
	{ "file", 0, true, "/file" },         { "./sub//../file", 0, true, "/file" },
	{ "link", 0, true, "/file" },         { "sub/", 0, true, "/sub" },
	{ "file/", -ENOTDIR, false, NULL },   { "file/x", -ENOTDIR, false, NULL },
	{ "new", 0, false, "/new" },          { "new/", -ENOENT, false, NULL },
	{ "no/where", -ENOENT, false, NULL }, { "dangling", 0, false, "/sub/new" },
	{ "loop", -ELOOP, false, NULL },      { "", -ENOENT, false, NULL },
	{ "all/ours", 0, true, "/all/ours" }, { "all/link", 0, true, "/all/ours" },
	{ "all/new", 0, false, "/all/new" },  { "all/twice", -EPERM, false, NULL },
};

/* And who is to blame. */
static const struct {
	const char *path, *blamed;
} traps[] = {
	{ "all/theirs", "/all/theirs" },        { "all/trap", "/all/trap" },
	{ "all/folder/new", "/all/folder" },    { "all/way/new", "/all/way" },
	{ "all/../all/theirs", "/all/theirs" },
};

static void followed(void **state)
{
	struct weft_chased chased = {};
	char want[PATH_MAX];

	for_each_named(i, paths, path) {
		struct weft_err err = { "" };

		assert_int_equal(weft_chase(&chased, paths[i].path, &err), paths[i].rc);
		if (paths[i].rc == -ENOENT && paths[i].path[0])
			assert_non_null(strstr(err.text, "there is no folder /"));
		else
			assert_int_equal(err.text[0] != '\0', paths[i].rc == -EPERM);
		if (paths[i].rc)
			continue;
		assert_int_equal(chased.exists, paths[i].there);
		snprintf(want, sizeof(want), "%s%s", dir, paths[i].leads_to);
		assert_string_equal(chased.path, want);
		weft_chased_close(&chased);
	}
}

static void absolute(void **state)
{
	struct weft_chased chased = {};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/up/%s/link", dir, strrchr(dir, '/') + 1);
	assert_int_equal(weft_chase(&chased, path, NULL), 0);
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_string_equal(chased.path, path);
	weft_chased_close(&chased);
	assert_int_equal(weft_chase(&chased, "/", NULL), 0);
	assert_string_equal(chased.path, "/");
	weft_chased_close(&chased);
	assert_int_equal(weft_chase(&chased, "/../..", NULL), 0);
	assert_string_equal(chased.path, "/");
	weft_chased_close(&chased);
	/* Not where the text of that link would lead to. */
	assert_int_equal(weft_chase(&chased, "/proc/self/fd/1", NULL), 0);
	assert_true(chased.exists);
	assert_false(S_ISLNK(chased.st.st_mode));
	weft_chased_close(&chased);
}

/* Below such a link "..", which the text of the path does not tell, is not guessed. */
static void up_from_links_of_proc(void **state)
{
	static const char *const refused[] = { "/proc/self/cwd/../x.img", "/proc/self/cwd/./..",
					       "/proc/self/cwd/sub/../../x.img" };
	struct weft_chased chased = {};
	struct stat st;

	for_each_row(i, refused) {
		struct weft_err err = { "" };

		assert_int_equal(weft_chase(&chased, refused[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, refused[i]));
		assert_non_null(strstr(err.text, "\"..\" after a link of /proc"));
	}
	assert_int_equal(stat("file", &st), 0);
	assert_int_equal(weft_chase(&chased, "/proc/self/cwd/sub/../file", NULL), 0);
	assert_int_equal(chased.st.st_ino, st.st_ino);
	weft_chased_close(&chased);
}

static void trapped(void **state)
{
	struct weft_chased chased = {};
	char want[600];

	if (geteuid())
		skip(); /* only root makes files of another user */
	for_each_named(i, traps, path) {
		struct weft_err err = { "" };

		assert_int_equal(weft_chase(&chased, traps[i].path, &err), -EPERM);
		snprintf(want, sizeof(want),
			 "%s: %s%s belongs to user 65534, and everybody can write to the folder "
			 "that it is in; use another folder, or remove it",
			 traps[i].path, dir, traps[i].blamed);
		assert_string_equal(err.text, want);
	}
}

/* --- from the working directory ---------------------------------------------------------------- */

static int rc_in(const char *folder, uid_t user, const char *path, struct weft_err *err)
{
	struct weft_chased chased = {};
	int rc;

	assert_int_equal(chdir(folder) | seteuid(user), 0);
	rc = weft_chase(&chased, path, err);
	assert_int_equal(seteuid(0) | chdir(dir), 0);
	weft_chased_close(&chased);
	return rc;
}

/* The kernel lets a user work in a folder that he could not reach by its path. */
static void below_a_closed_folder(void **state)
{
	static const struct {
		const char *path;
		int rc;
	} cases[] = {
		{ "new", 0 },
		{ "./new", 0 },
		{ "sub/new", 0 },
		{ "sub/../new", 0 },
		{ "sub/../sub/new", 0 },
		{ "down/../new", 0 },
		{ "../new", -EACCES },
		{ "sub/../../new", -EACCES },
	};

	if (geteuid())
		skip(); /* only root becomes another user */
	assert_int_equal(mkdir("closed", 0755) | mkdir("closed/open", 0755) |
				 mkdir("closed/open/sub", 0755) |
				 symlink("sub", "closed/open/down"),
			 0);
	of_neighbour("closed/open");
	assert_int_equal(chmod("closed", 0700), 0);
	for_each_named(i, cases, path)
		assert_int_equal(rc_in("closed/open", NEIGHBOUR, cases[i].path, NULL), cases[i].rc);
}

static void within_a_neighbours_folder(void **state)
{
	struct weft_err err = { "" };
	char blamed[64];

	if (geteuid())
		skip();
	assert_int_equal(mkdir("all/folder/deep", 0755), 0);
	assert_int_equal(rc_in("all/folder/deep", 0, "new", &err), -EPERM);
	snprintf(blamed, sizeof(blamed), "%s/all/folder belongs to user", dir);
	assert_non_null(strstr(err.text, blamed));
	assert_int_equal(rc_in("all", 0, "theirs", NULL), -EPERM);
	assert_int_equal(rc_in("all", 0, "../file", NULL), 0);
	assert_int_equal(rc_in("/", 0, "../tmp/new", NULL), 0);
}

/* Nobody writes to the FIFO, nor reads it: who waits for that waits for ever. */
static void exchanged_for_fifo(void **state)
{
	static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR };
	struct weft_chased chased = {};
	int fd;

	assert_int_equal(weft_chase(&chased, "all/ours", NULL), 0);
	fd = weft_chased_open(&chased, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	close(fd);
	fd = weft_chased_open(&chased, O_RDONLY | O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	close(fd);
	assert_int_equal(unlink("all/ours") | mkfifo("all/ours", 0600), 0);
	for_each_row(i, flags)
		assert_int_equal(weft_chased_open(&chased, flags[i]), -ESTALE);
	assert_int_equal(unlink("all/ours"), 0);
	make_file("all/ours");
	weft_chased_close(&chased);
}

static void exchanged(void **state)
{
	struct weft_chased chased = {};
	int fd;

	assert_int_equal(weft_chase(&chased, "all/ours", NULL), 0);
	fd = weft_chased_open(&chased, O_RDWR);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rename("file", "all/ours"), 0);
	assert_int_equal(weft_chased_open(&chased, O_RDWR), -ESTALE);
	assert_int_equal(unlink("all/ours") | symlink("../file", "all/ours"), 0);
	assert_int_equal(weft_chased_open(&chased, O_RDWR), -ESTALE);
	assert_int_equal(unlink("all/ours"), 0);
	make_file("all/ours");
	weft_chased_close(&chased);
	make_file("file");
	assert_int_equal(weft_chase(&chased, "all/late", NULL), 0);
	assert_int_equal(symlink("../sub/made", "all/late"), 0);
	assert_int_equal(weft_chased_create(&chased, O_RDWR, 0600), -EEXIST);
	assert_int_equal(access("sub/made", F_OK), -1);
	weft_chased_close(&chased);
}

static void made_with_its_mode(void **state)
{
	static const mode_t modes[] = { 0600, 0640, 0644 };
	mode_t mask = umask(022);

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int fd = weft_chase_or_create("moded", O_APPEND, modes[i], NULL);
		struct stat st;

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, modes[i]);
		close(fd);
		assert_int_equal(unlink("moded"), 0);
	}
	umask(mask);
	assert_int_equal(weft_chase_or_create("sub", 0, 0600, NULL), -EINVAL);
}

/* --- a race ----------------------------------------------------------------------------------- */

static bool swap_due; /* before the walk takes its step to "raced" */
static bool move_due; /* after the one to "moved" */

/* In all/ a neighbour may rename our folder, and lead elsewhere under its name. */
static void swap_folder(void)
{
	swap_due = false;
	assert_int_equal(rename("all/moved", "all/away") | symlink("../sub", "all/moved"), 0);
}

static void swap_back(void)
{
	assert_int_equal(unlink("all/moved") | rename("all/away", "all/moved"), 0);
}

int __real_openat64(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode);

int __wrap_openat64(int folder, const char *name, int flags, mode_t mode)
{
	int fd;

	if (swap_due && !strcmp(name, "raced"))
		swap_folder();
	fd = __real_openat64(folder, name, flags, mode);
	if (move_due && !strcmp(name, "moved")) {
		move_due = false;
		assert_int_equal(rename("all/moved", "sub/moved"), 0);
	}
	return fd;
}

static void chase_raced(struct weft_chased *chased, const char *path, bool in_walk)
{
	swap_due = in_walk;
	assert_int_equal(weft_chase(chased, path, NULL), 0);
	if (!in_walk)
		swap_folder();
	assert_false(swap_due);
}

/* Made, opened and removed in the folder that was judged, whenever the other comes. */
static void raced(void **state)
{
	assert_int_equal(mkdir("all/moved", 0755), 0);
	for (int in_walk = 0; in_walk < 2; in_walk++) {
		struct weft_chased chased = {};
		int fd;

		chase_raced(&chased, "all/moved/raced", in_walk);
		fd = weft_chased_create(&chased, O_RDWR, 0600);
		assert_int_equal(access("sub/raced", F_OK), -1);
		assert_int_equal(access("all/away/raced", F_OK), 0);
		close(fd);
		weft_chased_close(&chased);
		swap_back();

		make_file("sub/raced");
		chase_raced(&chased, "all/moved/raced", in_walk);
		fd = weft_chased_open(&chased, O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(weft_chased_unlink(&chased), 0);
		assert_int_equal(access("sub/raced", F_OK), 0);
		assert_int_equal(access("all/away/raced", F_OK), -1);
		close(fd);
		weft_chased_close(&chased);
		swap_back();
		assert_int_equal(unlink("sub/raced"), 0);
	}
	assert_int_equal(rmdir("all/moved"), 0);
}

/* ".." is the folder that the path names, not the one that ours was moved to. */
static void raced_upwards(void **state)
{
	struct weft_chased chased = {};
	int fd;

	assert_int_equal(mkdir("all/moved", 0755), 0);
	move_due = true;
	assert_int_equal(weft_chase(&chased, "all/moved/../raced", NULL), 0);
	assert_false(move_due);
	fd = weft_chased_create(&chased, O_RDWR, 0600);
	assert_int_equal(access("sub/raced", F_OK), -1);
	assert_int_equal(unlink("all/raced") | rmdir("sub/moved"), 0);
	close(fd);
	weft_chased_close(&chased);
}

static unsigned open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void nothing_is_left_open(void **state)
{
	unsigned before = open_descriptors();

	for_each_named(i, paths, path) {
		struct weft_chased chased = {};

		weft_chase(&chased, paths[i].path, NULL);
		weft_chased_close(&chased);
		assert_int_equal(open_descriptors(), before);
	}
}

/* --- draft ------------------------------------------------------------------------------------ */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static unsigned synced_files, synced_folders; /* the latter once the file has its name */

int __wrap_fsync(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		synced_folders += !access("draft", F_OK);
	else
		synced_files++;
	return __real_fsync(fd);
}

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);

static bool marked_part; /* it had its old name when it lost its mark */

int __wrap_fchmod(int fd, mode_t mode)
{
	marked_part |= !access("draft.part", F_OK);
	return __real_fchmod(fd, mode);
}

int __real_renameat2(int from, const char *old, int to, const char *new, unsigned flags);
int __wrap_renameat2(int from, const char *old, int to, const char *new, unsigned flags);

static bool cannot_keep; /* a file system without RENAME_NOREPLACE */

int __wrap_renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	if (!cannot_keep || !flags)
		return __real_renameat2(from, old, to, new, flags);
	errno = EINVAL;
	return -1;
}

int __real_linkat(int from, const char *old, int to, const char *new, int flags);
int __wrap_linkat(int from, const char *old, int to, const char *new, int flags);

static int cannot_link; /* why a file system without hard links makes none; 0: it has them */

int __wrap_linkat(int from, const char *old, int to, const char *new, int flags)
{
	if (!cannot_link)
		return __real_linkat(from, old, to, new, flags);
	errno = cannot_link;
	return -1;
}

static void drafted(void **state)
{
	struct weft_draft draft = {}, second = {};
	struct weft_err err = { "" };
	struct stat st;
	int fd;

	assert_int_equal(weft_draft_locate(&draft, "link", false, &err), -EEXIST);
	assert_int_equal(weft_draft_locate(&draft, "sub", true, &err), -EINVAL);
	assert_int_equal(weft_draft_locate(&draft, "draft", false, NULL), 0);
	fd = weft_draft_create(&draft, NULL);
	assert_true(fd >= 0);
	assert_int_equal(stat("draft.part", &st), 0);
	assert_int_equal(st.st_mode & 07777, 01600);
	assert_int_equal(weft_draft_locate(&second, "draft", false, NULL), 0);
	assert_int_equal(weft_draft_create(&second, NULL), -EBUSY);
	assert_int_equal(access("draft.part", F_OK), 0);
	synced_files = synced_folders = 0;
	assert_int_equal(weft_draft_commit(&draft, fd, NULL), 0);
	assert_true(synced_files > 0 && synced_folders > 0);
	assert_false(marked_part);
	assert_int_equal(stat("draft", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(access("draft.part", F_OK), -1);
	close(fd);

	/* Somebody made it between place and complete. */
	fd = weft_draft_create(&second, NULL);
	assert_true(fd >= 0);
	assert_int_equal(weft_draft_commit(&second, fd, NULL), -EEXIST);
	weft_draft_discard(&second);
	assert_int_equal(access("draft.part", F_OK), -1);
	close(fd);
	weft_draft_free(&draft);
	weft_draft_free(&second);
}

static int draft_once(const char *path, void (*meanwhile)(const char *name))
{
	struct weft_draft draft = {};
	int fd, rc;

	assert_int_equal(weft_draft_locate(&draft, path, false, NULL), 0);
	fd = weft_draft_create(&draft, NULL);
	assert_true(fd >= 0);
	if (meanwhile)
		meanwhile(path);
	rc = weft_draft_commit(&draft, fd, NULL);
	weft_draft_discard(&draft);
	weft_draft_free(&draft);
	close(fd);
	return rc;
}

static void replaces_nothing(void **state)
{
	struct stat st;

	cannot_keep = true;
	assert_int_equal(draft_once("late", make_file), -EEXIST);
	assert_int_equal(access("late.part", F_OK), -1);
	assert_int_equal(draft_once("linked", NULL), 0);
	assert_int_equal(stat("linked", &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(access("linked.part", F_OK), -1);
	cannot_keep = false;
}

/* As rclone and s3fs: neither a rename that replaces nothing nor a second name. */
static void put_without_links(void **state)
{
	static const int errors[] = { EPERM, EOPNOTSUPP, ENOSYS };

	cannot_keep = true;
	for_each_row(i, errors) {
		cannot_link = errors[i];
		assert_int_equal(draft_once("unlinked", NULL), 0);
		assert_int_equal(access("unlinked.part", F_OK), -1);
		assert_int_equal(unlink("unlinked"), 0);
		assert_int_equal(draft_once("unlinked", make_file), -EEXIST);
		assert_int_equal(access("unlinked.part", F_OK), -1);
		assert_int_equal(unlink("unlinked"), 0);
	}
	cannot_link = EDQUOT; /* it has them, but this one cannot be made */
	assert_int_equal(draft_once("unlinked", NULL), -EDQUOT);
	assert_int_equal(access("unlinked", F_OK), -1);
	cannot_keep = false;
	cannot_link = 0;
}

static mode_t mode_of_draft(const char *path, mode_t mode, mode_t mask)
{
	struct weft_draft draft = {};
	mode_t was = umask(mask);
	struct stat st;
	int fd;

	assert_int_equal(weft_draft_locate(&draft, path, true, NULL), 0);
	weft_draft_set_mode(&draft, mode);
	assert_int_equal(umask(was), mask);
	fd = weft_draft_create(&draft, NULL);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 01600); /* until it is complete */
	assert_int_equal(weft_draft_commit(&draft, fd, NULL), 0);
	assert_int_equal(fstat(fd, &st), 0);
	weft_draft_free(&draft);
	close(fd);
	return st.st_mode & 07777;
}

static void drafted_for_others(void **state)
{
	assert_int_equal(mode_of_draft("plot", 0666, 022), 0644);
	assert_int_equal(mode_of_draft("plot", 0666, 0), 0644); /* of the file that it replaces */
	assert_int_equal(unlink("plot"), 0);
	assert_int_equal(mode_of_draft("plot", 0666, 027), 0640);
	assert_int_equal(unlink("plot"), 0);
}

/* Killed between its second name and the end of its first. */
static void killed_while_linked(void **state)
{
	struct weft_draft draft = {};
	int fd;

	make_file("killed");
	assert_int_equal(chmod("killed", 01600) | link("killed", "killed.part"), 0);
	assert_int_equal(weft_draft_locate(&draft, "killed", true, NULL), 0);
	fd = weft_draft_create(&draft, NULL);
	assert_true(fd >= 0);
	assert_int_equal(weft_draft_commit(&draft, fd, NULL), 0);
	assert_int_equal(access("killed.part", F_OK), -1);
	close(fd);
	weft_draft_free(&draft);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(followed),
		cmocka_unit_test(absolute),
		cmocka_unit_test(up_from_links_of_proc),
		cmocka_unit_test(trapped),
		cmocka_unit_test(below_a_closed_folder),
		cmocka_unit_test(within_a_neighbours_folder),
		cmocka_unit_test(exchanged),
		cmocka_unit_test(exchanged_for_fifo),
		cmocka_unit_test(made_with_its_mode),
		cmocka_unit_test(raced),
		cmocka_unit_test(raced_upwards),
		cmocka_unit_test(nothing_is_left_open),
		cmocka_unit_test(drafted),
		cmocka_unit_test(replaces_nothing),
		cmocka_unit_test(put_without_links),
		cmocka_unit_test(drafted_for_others),
		cmocka_unit_test(killed_while_linked),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
