/* test_backend_spec.c - SPECs, and what opening one does. */
#include "backend_case.h"
#include "running.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- SPECs ------------------------------------------------------------------------------------ */

#define UUID  "2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b"
#define UUID2 "2F1C3B7E-52A4-4C0E-9D3A-6B8F0E1D2C3B"

static const struct {
	const char *text;
	struct weft_spec spec;
} good[] = {
	{ "mem:1G", { .type = "mem", .arg = "1G", .size = GIB } },
	{ "mem:512", { .type = "mem", .arg = "512", .size = 512 } },
	{ "mem:4K,block=4096", { .type = "mem", .arg = "4K", .size = 4096, .block = 4096 } },
	{ "mem:1M,block=4K,nsid=7",
	  { .type = "mem", .arg = "1M", .size = MIB, .block = 4096, .nsid = 7 } },
	{ "null:1T", { .type = "null", .arg = "1T", .size = 1024 * GIB } },
	{ "null:1g,ro", { .type = "null", .arg = "1g", .size = GIB, .read_only = true } },
	{ "null:4k,nsid=1024", { .type = "null", .arg = "4k", .size = 4096, .nsid = 1024 } },
	{ "file:/a", { .type = "file", .arg = "/a" } },
	{ "file:/a:b=c,size=10G", { .type = "file", .arg = "/a:b=c", .size = 10 * GIB } },
	{ "file:a b,direct,ro,size=1536",
	  { .type = "file", .arg = "a b", .size = 1536, .read_only = true, .direct = true } },
	{ "file:/a,uuid=" UUID, { .type = "file", .arg = "/a", .uuid = UUID } },
	{ "file:/a,uuid=" UUID2, { .type = "file", .arg = "/a", .uuid = UUID } },
	{ "block:/dev/sdb,block=512", { .type = "block", .arg = "/dev/sdb", .block = 512 } },
};

static void test_spec_good(void **state)
{
	struct weft_err err = { "" };
	struct weft_spec spec;

	for_each_named(i, good, text) {
		const struct weft_spec *want = &good[i].spec;

		if (weft_spec_parse(good[i].text, &spec, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(spec.type, want->type);
		assert_string_equal(spec.ops->type, want->type);
		assert_string_equal(spec.arg, want->arg);
		assert_string_equal(spec.uuid, want->uuid);
		assert_int_equal(spec.size, want->size);
		assert_int_equal(spec.block, want->block);
		assert_int_equal(spec.nsid, want->nsid);
		assert_int_equal(spec.read_only, want->read_only);
		assert_int_equal(spec.direct, want->direct);
	}
}

#define TYPES      "mem:SIZE, null:SIZE, file:PATH[,size=SIZE][,direct], block:PATH"
#define A_UUID     "a UUID such as " UUID
#define A_NSID     "a number from 1 to 1024"
#define MEM_KEYS   "block, nsid, uuid, ro, delay, error"
#define FILE_KEYS  "size, direct, " MEM_KEYS
#define DOUBT      "may count in 1000s or in 1024s"
#define NOT_A_SIZE "is not a size; expected mem:SIZE, such as mem:1G"

static const struct {
	const char *text;
	int rc;
	const char *why; /* behind "TEXT: " */
} bad[] = {
	{ "", -EINVAL, "unknown type \"\"; expected one of " TYPES },
	{ "disk:/a", -EINVAL, "unknown type \"disk\"; expected one of " TYPES },
	{ "/srv/a.img,size=1G", -EINVAL, "it has no type; did you mean file:/srv/a.img,size=1G?" },
	{ "./a.img", -EINVAL, "it has no type; did you mean file:./a.img?" },
	{ "/dev/sdb", -EINVAL, "it has no type; did you mean block:/dev/sdb?" },
	{ ":1G", -EINVAL, "unknown type \"\"; expected one of " TYPES },
	{ "mem", -EINVAL, "expected mem:SIZE" },
	{ "mem:", -EINVAL, "expected mem:SIZE" },
	{ "mem,ro", -EINVAL, "expected mem:SIZE" },
	{ "file:,size=1G", -EINVAL, "expected file:PATH[,size=SIZE][,direct]" },
	{ "block:", -EINVAL, "expected block:PATH" },
	{ "mem:lots", -EINVAL, "\"lots\" " NOT_A_SIZE },
	{ "mem:0", -EINVAL, "\"0\" " NOT_A_SIZE },
	{ "mem:-1", -EINVAL, "\"-1\" " NOT_A_SIZE },
	{ "mem:1GB", -EINVAL, "\"1GB\" " DOUBT "; write 1G, which is in 1024s" },
	{ "mem:1.5gb", -EINVAL, "\"1.5gb\" " DOUBT "; write 1.5g, which is in 1024s" },
	{ "mem:1.1K", -EINVAL, "\"1.1K\" " NOT_A_SIZE },
	{ "mem:1B", -EINVAL, "\"1B\" " NOT_A_SIZE },
	{ "file:/a,size=10MB", -EINVAL,
	  "key \"size\": \"10MB\" " DOUBT "; write 10M, which is in 1024s" },
	{ "mem:99999P", -ERANGE, "99999P is too large" },
	{ "mem:8192P", -ERANGE, "8192P is too large" },
	{ "mem:1000", -EINVAL, "the size is not a multiple of the block, 512 bytes" },
	{ "mem:1536,block=4096", -EINVAL, "the size is not a multiple of the block, 4096 bytes" },
	{ "file:/a,block=4096,size=512", -EINVAL,
	  "the size is not a multiple of the block, 4096 bytes" },
	{ "mem:1G,", -EINVAL, "mem takes no key \"\"; expected one of " MEM_KEYS },
	{ "mem:1G,direct", -EINVAL, "mem takes no key \"direct\"; expected one of " MEM_KEYS },
	{ "mem:1G,size=1G", -EINVAL, "mem takes no key \"size\"; expected one of " MEM_KEYS },
	{ "block:/a,direct", -EINVAL, "block takes no key \"direct\"; expected one of " MEM_KEYS },
	{ "file:/a,sice=1G", -EINVAL, "file takes no key \"sice\"; expected one of " FILE_KEYS },
	{ "file:/a,=1G", -EINVAL, "file takes no key \"\"; expected one of " FILE_KEYS },
	{ "file:/a,ro,ro", -EINVAL, "key \"ro\" is given twice" },
	{ "file:/a,size=1G,size=1G", -EINVAL, "key \"size\" is given twice" },
	{ "file:/a,ro=1", -EINVAL, "key \"ro\" takes no value" },
	{ "file:/a,direct=", -EINVAL, "key \"direct\" takes no value" },
	{ "file:/a,size", -EINVAL,
	  "key \"size\" needs a value; expected a size such as 512M or 10G" },
	{ "file:/a,size=", -EINVAL,
	  "key \"size\" cannot be \"\"; expected a size such as 512M or 10G" },
	{ "file:/a,size=0", -EINVAL,
	  "key \"size\" cannot be \"0\"; expected a size such as 512M or 10G" },
	{ "file:/a,size=99999P", -ERANGE, "key \"size\": 99999P is too large" },
	{ "mem:1G,block=1024", -EINVAL, "key \"block\" cannot be \"1024\"; expected 512 or 4096" },
	{ "mem:1G,block", -EINVAL, "key \"block\" needs a value; expected 512 or 4096" },
	{ "mem:1G,nsid=0", -EINVAL, "key \"nsid\" cannot be \"0\"; expected " A_NSID },
	{ "mem:1G,nsid=4294967295", -EINVAL,
	  "key \"nsid\" cannot be \"4294967295\"; expected " A_NSID },
	{ "mem:1G,nsid=99999999999999999999", -EINVAL,
	  "key \"nsid\" cannot be \"99999999999999999999\"; expected " A_NSID },
	{ "mem:1G,nsid=1x", -EINVAL, "key \"nsid\" cannot be \"1x\"; expected " A_NSID },
	{ "mem:1G,nsid=-1", -EINVAL, "key \"nsid\" cannot be \"-1\"; expected " A_NSID },
	{ "mem:1G,uuid=1", -EINVAL, "key \"uuid\" cannot be \"1\"; expected " A_UUID },
	{ "mem:1G,uuid=00000000-0000-0000-0000-000000000000", -EINVAL,
	  "key \"uuid\" cannot be \"00000000-0000-0000-0000-000000000000\"; expected " A_UUID },
	{ "mem:1G,uuid=2f1c3b7e-52a4-4c0e-9d3a_6b8f0e1d2c3b", -EINVAL,
	  "key \"uuid\" cannot be \"2f1c3b7e-52a4-4c0e-9d3a_6b8f0e1d2c3b\"; expected " A_UUID },
	{ "mem:1G,uuid=2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3g", -EINVAL,
	  "key \"uuid\" cannot be \"2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3g\"; expected " A_UUID },
};

static void test_spec_bad(void **state)
{
	struct weft_spec spec;

	for_each_named(i, bad, text) {
		struct weft_err err = { "" };

		assert_int_equal(weft_spec_parse(bad[i].text, &spec, &err), bad[i].rc);
		assert_string_equal(err.text, text("%s: %s", bad[i].text, bad[i].why));
	}
}

static void test_spec_long(void **state)
{
	char spec_text[2048] = "file:/";
	struct weft_err err = { "" };
	struct weft_spec spec;

	memset(spec_text + 6, 'a', 1500);
	assert_int_equal(weft_spec_parse(spec_text, &spec, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "aaa: longer than 1023 bytes"));
}

static void test_usage(void **state)
{
	assert_string_equal(weft_backend_usage(0), "mem:SIZE");
	assert_string_equal(weft_backend_usage(2), "file:PATH[,size=SIZE][,direct]");
	assert_null(weft_backend_usage(4));
	assert_null(weft_backend_usage(1000));
}

/* --- opening ---------------------------------------------------------------------------------- */

static void test_open_canonical(void **state)
{
	static const char *const table[][2] = {
		{ "mem:1024K,block=4096,nsid=3,uuid=" UUID, "mem:1M" },
		{ "null:1024G,ro", "null:1T,ro" },
		{ "file:a,ro,nsid=1", "file:%s/a,ro" },
		{ "file:a,block=4096,size=1024K", "file:%s/a,size=1M" },
		{ "file:b,size=1M", "file:%s/b,size=1M" },
	};
	struct weft_backend *be;
	char cwd[512];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	make_file("a", MIB);
	for_each_row(i, table) {
		const char *at = strstr(table[i][1], "%s");
		const char *want = table[i][1];

		if (at)
			want = text("%.*s%s%s", (int)(at - want), want, dir, at + 2);
		for (int again = 0; again < 2; again++) {
			be = open_spec(again ? want : table[i][0]);
			assert_string_equal(be->spec, want);
			weft_backend_close(be);
		}
	}
	assert_int_equal(chdir(cwd), 0);
}

static void test_open_creates_sparse(void **state)
{
	const char *path = text("%s/new", dir), *spec = text("file:%s,size=1T", path);
	struct weft_backend *be = open_spec(spec);
	struct stat st;

	assert_int_equal(be->size, 1024 * GIB);
	assert_true(be->thin);
	assert_in_range(be->ops->used(be), 0, MIB);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1024 * GIB);
	assert_int_equal(st.st_mode & 0777, 0600);
	weft_backend_close(be);
}

static void test_open_grows_never_cuts(void **state)
{
	const char *path = text("%s/grows", dir);
	struct weft_backend *be;

	make_file(path, MIB);
	be = open_spec(text("file:%s,size=2M", path));
	assert_int_equal(be->size, 2 * MIB);
	assert_int_equal(file_size(path), 2 * MIB);
	weft_backend_close(be);
	assert_refused(text("file:%s,size=1M", path), -EINVAL,
		       text("file:%s: it has 2M, more than size=, and is not cut; expected size=2M",
			    path));
	assert_refused(text("file:%s,size=4M,ro", path), -EROFS,
		       text("file:%s: it has 2M, less than size=, and \"ro\" does not let it grow",
			    path));
	assert_int_equal(file_size(path), 2 * MIB);
}

static void test_open_refused(void **state)
{
	const char *path = text("%s/x", dir);

	assert_refused(text("file:%s", path), -ENOENT,
		       text("file:%s: no such file; size=SIZE would create it", path));
	assert_refused(text("file:%s,size=1M,ro", path), -ENOENT,
		       text("file:%s: cannot open it: No such file or directory", path));
	assert_refused(text("file:%s/y,size=1M", path), -ENOENT,
		       text("%s/y: there is no folder %s; make it first, or correct the path", path,
			    path));
	assert_refused(text("file:%s", dir), -EINVAL,
		       text("file:%s: it is not a regular file", dir));
	assert_refused(text("block:%s", path), -ENOENT,
		       text("block:%s: cannot open it: No such file or directory", path));
	assert_refused("block:/dev/null", -ENOTBLK, "block:/dev/null: it is not a block device");
	make_file(path, 0);
	assert_refused(text("file:%s", path), -EINVAL,
		       text("file:%s: a size of 0 is too small", path));
	make_file(path, 1000);
	assert_refused(text("file:%s", path), -EINVAL,
		       text("file:%s: a size of 1000 is not a multiple of the block, 512 bytes",
			    path));
	make_file(path, 1536);
	assert_refused(text("file:%s,block=4096", path), -EINVAL,
		       text("file:%s: a size of 1536 is not a multiple of the block, 4096 bytes",
			    path));
	assert_refused(text("block:%s", path), -ENOTBLK,
		       text("block:%s: it is a regular file; expected file:%s", path, path));
}

static uid_t started_as;

/* Nothing is forbidden to root. */
static void become_nobody(const char *path)
{
	started_as = getuid();
	if (started_as)
		return;
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
	assert_int_equal(setresuid(65534, 65534, 0), 0);
}

static void test_open_forbidden(void **state)
{
	const char *path = text("%s/forbidden", dir);

	make_file(path, MIB);
	assert_int_equal(chmod(path, 0400), 0);
	become_nobody(path);
	assert_refused(text("file:%s", path), -EACCES,
		       text("file:%s: cannot open it for writing: Permission denied; \"ro\" would "
			    "serve it read only",
			    path));
	assert_int_equal(chmod(path, 0), 0);
	assert_refused(text("file:%s", path), -EACCES,
		       text("file:%s: cannot open it: Permission denied; this user may not reach it",
			    path));
	if (!started_as)
		assert_int_equal(setresuid(0, 0, 0), 0);
}

static void test_open_mem_too_large(void **state)
{
	assert_refused("mem:4096P", -ENOMEM,
		       "mem:4096P: cannot reserve the memory: Cannot allocate memory");
}

/* Larger than any file system takes: made, refused, gone. */
static void test_open_leaves_nothing(void **state)
{
	const char *path = text("%s/huge", dir);
	struct weft_backend *be;
	struct weft_err err;
	int rc = try_open(&be, text("file:%s,size=8191P", path), &err);

	if (rc == 0) {
		weft_backend_close(be);
		skip_because("this file system takes 8191P");
	}
	assert_string_equal(err.text, text("file:%s: cannot make it as large as size=: %s", path,
					   strerror(-rc)));
	assert_int_equal(file_size(path), -1);
}

static void test_open_locks(void **state)
{
	const char *path = text("%s/locked", dir);
	const char *rw = text("file:%s,size=1M", path), *ro = text("file:%s,ro", path);
	const char *why = text("file:%s: it is in use: another namespace, target or program has "
			       "locked it",
			       path);
	struct weft_backend *be = open_spec(rw), *other;

	assert_refused(rw, -EBUSY, why);
	assert_refused(ro, -EBUSY, why);
	weft_backend_close(be);
	be = open_spec(ro);
	other = open_spec(ro);
	assert_refused(rw, -EBUSY, why);
	weft_backend_close(other);
	weft_backend_close(be);
	weft_backend_close(open_spec(rw));
}

static struct weft_backend *open_as(const char *spec_text, unsigned node)
{
	struct weft_backend *be = NULL;
	struct weft_err err = { "" };
	struct weft_spec spec;

	assert_int_equal(weft_spec_parse(spec_text, &spec, &err), 0);
	spec.node = node;
	weft_backend_open(&be, &spec, &err); /* NULL: it was refused */
	return be;
}

/* Somebody who may only read it locks node 2's byte. */
static int lock_as_reader(const char *path)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = ((off_t)1 << 62) + 2, .l_len = 1
	};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	return fd;
}

/* Nodes 1 and 2 share it, nobody else; what a node has open is seen by the other. */
static void test_open_shared(void **state)
{
	const char *rw = text("file:%s/shared,size=1M", dir);
	struct weft_backend *one = open_as(rw, 1), *two = open_as(rw, 2);
	int reader;

	assert_true(one && two);
	assert_null(open_as(rw, 1));
	assert_null(open_as(rw, 0));
	assert_true(one->ops->node_active(one, 2) && two->ops->node_active(two, 1));
	assert_false(one->ops->node_active(one, 3));
	weft_backend_close(two);
	assert_false(one->ops->node_active(one, 2));
	reader = lock_as_reader(text("%s/shared", dir));
	assert_false(one->ops->node_active(one, 2));
	close(reader);
	assert_null(open_as(rw, 0));
	weft_backend_close(one);
	one = open_as(rw, 0);
	assert_non_null(one);
	assert_null(open_as(rw, 2));
	weft_backend_close(one);
}

/* What the first takes it for, the second must. */
static void test_shared_as(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 1ull << 40, WEFT_LOCK_AS_MAX - 2,
					    WEFT_LOCK_AS_MAX - 1 };
	const char *rw = text("file:%s/shared,size=1M", dir);

	for (size_t i = 0; i < COUNT(numbers) * COUNT(numbers); i++) {
		uint64_t first = numbers[i / COUNT(numbers)], second = numbers[i % COUNT(numbers)];
		struct weft_backend *one = open_as(rw, 1), *two = open_as(rw, 2);
		uint64_t other = first;

		assert_int_equal(one->ops->lock_as(one, first, &other), 0);
		assert_int_equal(one->ops->lock_as(one, first, &other), 0);
		assert_int_equal(two->ops->lock_as(two, second, &other),
				 first == second ? 0 : -ENOTUNIQ);
		assert_int_equal(other, first);
		weft_backend_close(one);
		assert_int_equal(two->ops->lock_as(two, second, &other), 0);
		weft_backend_close(two);
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_spec_good),
	cmocka_unit_test(test_spec_bad),
	cmocka_unit_test(test_spec_long),
	cmocka_unit_test(test_usage),
	cmocka_unit_test(test_open_canonical),
	cmocka_unit_test(test_open_creates_sparse),
	cmocka_unit_test(test_open_grows_never_cuts),
	cmocka_unit_test(test_open_refused),
	cmocka_unit_test(test_open_forbidden),
	cmocka_unit_test(test_open_mem_too_large),
	cmocka_unit_test(test_open_leaves_nothing),
	cmocka_unit_test(test_open_locks),
	cmocka_unit_test(test_open_shared),
	cmocka_unit_test(test_shared_as),
};

int main(void)
{
	return cmocka_run_group_tests_name("spec and open", tests, make_dir, remove_dir);
}
