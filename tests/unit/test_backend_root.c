/* test_backend_root.c - what needs root: a full disk, a file system without holes, block devices.
 *
 * Without root they are skipped. */
#include "backend_case.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* --- file systems ----------------------------------------------------------------------------- */

static const char *mount_at(const char *type, const char *options)
{
	const char *path = text("%s/%s", dir, type);

	mkdir(path, 0700); /* may be there from the test before */
	if (mount("none", path, type, 0, options) < 0)
		skip_because(text("cannot mount %s: %s", type, strerror(errno)));
	return path;
}

static int unmount_all(void **state)
{
	umount2(text("%s/ext4", dir), MNT_DETACH);
	umount2(text("%s/tmpfs", dir), MNT_DETACH);
	umount2(text("%s/ramfs", dir), MNT_DETACH);
	return 0;
}

static void test_full(void **state)
{
	struct weft_backend *be;

	need_reactor();
	need_root();
	be = open_spec(text("file:%s/full,size=16M", mount_at("tmpfs", "size=256k")));
	fill(MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, MIB), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, MIB, 4096), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, MIB, 4096), -ENOSPC);
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), 0);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, 0, 16 * MIB), 0);
	assert_durable(be);
	weft_backend_close(be);
}

/* ramfs knows neither holes nor direct I/O. */
static void test_no_holes(void **state)
{
	struct weft_backend *be;
	const char *path;

	need_reactor();
	need_root();
	path = text("%s/a", mount_at("ramfs", NULL));
	be = open_spec(text("file:%s,size=8M", path));
	write_at(be, MIB, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_TRIM, 0, NULL, MIB, 4 * MIB), 0);
	assert_data(be, MIB, 4 * MIB, 1);
	assert_int_equal(do_io(be, WEFT_IO_ZERO, WEFT_IO_FUA, NULL, MIB + 512, 3 * MIB), 0);
	assert_zeroes(be, MIB + 512, 3 * MIB);
	fill(4 * MIB, 1);
	read_at(be, MIB, 4 * MIB);
	assert_memory_equal(got, data, 512);
	assert_memory_equal(got + 3 * MIB + 512, data + 3 * MIB + 512, MIB - 512);
	weft_backend_close(be);
	assert_refused(text("file:%s,direct", path), -EINVAL,
		       text("file:%s: its file system does not do direct I/O; leave \"direct\" out",
			    path));
	assert_refused(text("file:%s2,direct,size=1M", path), -EINVAL,
		       text("file:%s2: its file system does not do direct I/O; leave \"direct\" "
			    "out",
			    path));
	assert_int_equal(file_size(text("%s2", path)), -1);
}

/* A loop device over @path; gone with the descriptor. */
static int loop_attach(const char *path, unsigned block, char *device, size_t size)
{
	_cleanup_(weft_closep) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	_cleanup_(weft_closep) int file = open(path, O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (__u32)file,
		.block_size = block,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int number, fd;

	number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	if (number < 0)
		skip_because("no loop devices");
	snprintf(device, size, "/dev/loop%d", number);
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		skip_because(text("%s: %s", device, strerror(errno)));
	return fd;
}

static void make_ext4(const char *device)
{
	if (system(text("PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F -O ^has_journal -N 16 %s",
			device)))
		skip_because("no mkfs.ext4");
}

/* A disk that has room for its file system and little more, which the file system does not know:
 * writes go into the page cache, and are lost when they are written back. */
static int lossy_ext4(void)
{
	const char *path = text("%s/disk", mount_at("tmpfs", "size=2m")),
		   *at = text("%s/ext4", dir);
	char device[32];
	int loop;

	make_file(path, 64 * MIB);
	loop = loop_attach(path, 512, device, sizeof(device));
	make_ext4(device);
	if (mkdir(at, 0700) < 0 || mount(device, at, "ext4", 0, "errors=continue") < 0)
		skip_because(text("cannot mount ext4: %s", strerror(errno)));
	return loop;
}

static void test_writeback_fails(void **state)
{
	struct weft_backend *flush, *fua;
	int loop, rc;

	need_reactor();
	need_root();
	loop = lossy_ext4();
	flush = open_spec(text("file:%s/ext4/flush,size=16M", dir));
	fua = open_spec(text("file:%s/ext4/fua,size=16M", dir));
	write_at(flush, 0, 4 * MIB, 1);
	rc = do_io(flush, WEFT_IO_FLUSH, 0, NULL, 0, 0);
	assert_true(rc == -EIO || rc == -ENOSPC);
	assert_not_durable(flush);
	fill(MIB, 1);
	rc = do_io(fua, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, MIB);
	assert_true(rc == -EIO || rc == -ENOSPC);
	assert_not_durable(fua);
	weft_backend_close(flush);
	weft_backend_close(fua);
	close(loop);
}

static void try_block(const char *device)
{
	struct weft_backend *be = open_spec(text("block:%s", device));

	assert_int_equal(be->size, 8 * MIB);
	assert_false(be->thin);
	assert_string_equal(be->spec, text("block:%s", device));
	try_backend(be);
	weft_backend_close(be);
}

static void try_block_refused(const char *device)
{
	const char *in_use = text("block:%s: it is in use (mounted, or opened by another program)",
				  device);
	struct weft_backend *be = open_spec(text("block:%s", device));
	struct weft_err err = { "" };

	assert_refused(text("block:%s", device), -EBUSY, in_use);
	assert_refused(text("block:%s,ro", device), -EBUSY, in_use);
	assert_refused(text("file:%s", device), -EINVAL,
		       text("file:%s: it is a block device; expected block:%s", device, device));
	assert_int_equal(weft_backend_resize(be, 16 * MIB, &err), -EINVAL);
	assert_string_equal(err.text,
			    text("block:%s: the device has 8M, not 16M; resize the device first",
				 device));
	weft_backend_close(be);
}

/* A disk of 8 MiB. Returns its descriptor; who closes it ends it. */
static int make_disk(const char *name, unsigned block, char *device, size_t size)
{
	const char *path = text("%s/%s", dir, name);

	need_reactor();
	need_root();
	make_file(path, 8 * MIB);
	return loop_attach(path, block, device, size);
}

static void test_block(void **state)
{
	char device[32];
	int loop = make_disk("disk", 512, device, sizeof(device));
	struct weft_backend *be;

	try_block(device);
	try_block_refused(device);
	be = open_spec(text("block:%s", device));
	assert_int_equal(be->block_min, 512);
	assert_int_equal(truncate(text("%s/disk", dir), 16 * MIB), 0);
	assert_int_equal(ioctl(loop, LOOP_SET_CAPACITY, 0), 0);
	resize_ok(be, 16 * MIB);
	write_at(be, 15 * MIB, MIB, 5);
	assert_data(be, 15 * MIB, MIB, 5);
	weft_backend_close(be);
	close(loop);
}

static void test_block_4096(void **state)
{
	char device[32];
	int loop = make_disk("disk4096", 4096, device, sizeof(device));
	struct weft_backend *be = open_spec(text("block:%s", device));

	assert_int_equal(be->block_min, 4096);
	assert_int_equal(be->align, 4096);
	weft_backend_close(be);
	assert_refused(text("block:%s,block=512", device), -EINVAL,
		       text("block:%s: block=512 is too small; it needs 4096", device));
	try_block(device);
	be = open_spec(text("block:%s,ro", device));
	assert_int_equal(do_io(be, WEFT_IO_WRITE, 0, data, 0, 4096), -EROFS);
	assert_data(be, 8 * MIB - 4096, 4096, 3);
	weft_backend_close(be);
	close(loop);
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct CMUnitTest with_engine[] = {
	cmocka_unit_test_teardown(test_full, unmount_all),
	cmocka_unit_test_teardown(test_no_holes, unmount_all),
	cmocka_unit_test_teardown(test_writeback_fails, unmount_all),
	cmocka_unit_test(test_block),
	cmocka_unit_test(test_block_4096),
};

int main(void)
{
	int failed = 0;

	failed += cmocka_run_group_tests_name("disks on epoll", with_engine, start_epoll, stop);
	failed += cmocka_run_group_tests_name("disks on io_uring", with_engine, start_uring, stop);
	return failed ? 1 : 0;
}
