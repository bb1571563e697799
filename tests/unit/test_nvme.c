/* test_nvme.c - statuses and directions of commands, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "proto/nvme.h"
#include "proto/status.h"
#include "running.h"

/* --- statuses --------------------------------------------------------------------------------- */

#define DNR 0x4000

static void status_from_errno(void **state)
{
	static const struct {
		int rc;
		uint16_t reading, writing; /* or making durable */
	} cases[] = {
		{ 0, 0, 0 },
		{ -EIO, 0x281, 0x280 },
		{ -ETIMEDOUT, 0x281, 0x280 },
		{ -ENOLINK, 0x281, 0x280 },
		{ -ENODATA, 0x281 | DNR, 0x280 | DNR },
		{ -EILSEQ, 0x281 | DNR, 0x280 | DNR },
		{ -EREMOTEIO, 0x281 | DNR, 0x280 | DNR },
		{ -EBADMSG, 0x281 | DNR, 0x280 | DNR },
		{ -EUCLEAN, 0x281 | DNR, 0x280 | DNR },
		{ -ENODEV, 0x281, 0x280 }, /* gone from this machine: others may have it */
		{ -ENXIO, 0x281, 0x280 },
		{ -ESTALE, 0x281, 0x280 },
		{ -ENOTRECOVERABLE, 0x281 | DNR, 0x280 | DNR },
		{ -ENOSPC, 0x81 | DNR, 0x81 | DNR },
		{ -EDQUOT, 0x81 | DNR, 0x81 | DNR },
		{ -EFBIG, 0x81 | DNR, 0x81 | DNR },
		{ -EROFS, 0x20 | DNR, 0x20 | DNR },
		{ -EOPNOTSUPP, 0x01 | DNR, 0x01 | DNR },
		{ -ENOMEM, 0x06, 0x06 },
		{ -EAGAIN, 0x06, 0x06 },
		{ -EBUSY, 0x06, 0x06 },
		{ -EINVAL, 0x06 | DNR, 0x06 | DNR },
	};

	for_each_row(i, cases) {
		uint16_t reading = weft_status_from_errno(cases[i].rc, true);
		uint16_t writing = weft_status_from_errno(cases[i].rc, false);

		if (reading != cases[i].reading || writing != cases[i].writing)
			fail_msg("%s: %#x, %#x", strerror(-cases[i].rc), reading, writing);
	}
}

static void status_text(void **state)
{
	static const struct {
		uint16_t status;
		const char *text;
	} cases[] = {
		{ 0x000, "success" },
		{ 0x001, "invalid opcode" },
		{ 0x001 | DNR, "invalid opcode" },
		{ 0x080 | DNR, "LBA out of range" },
		{ 0x182 | DNR, "connect: invalid parameters" },
		{ 0x285 | DNR, "compare failure" },
		{ 0x082, "namespace not ready" },
		{ 0x015, "operation denied" },
		{ 0x191, "authentication required" },
		{ 0x303, "asymmetric access in transition" },
		{ 0x7ff, "unknown status" },
	};

	for_each_named(i, cases, text)
		assert_string_equal(weft_status_text(cases[i].status), cases[i].text);
}

/* From 0x180 on the same status means one thing of Connect and another of a Write. */
static void io_status(void **state)
{
	static const struct {
		uint16_t status;
		int rc;
		const char *text;
	} cases[] = {
		{ 0x180, -EINVAL, "conflicting attributes" },
		{ 0x181, -EINVAL, "invalid protection information" },
		{ 0x182, -EROFS, "attempted write to a read-only range" },
		{ 0x183 | DNR, -EMSGSIZE, "command size limit exceeded" },
	};

	for_each_named(i, cases, text) {
		assert_int_equal(weft_io_status_to_errno(cases[i].status), cases[i].rc);
		assert_string_equal(weft_io_status_text(cases[i].status), cases[i].text);
	}
	for (uint16_t status = 0; status < 0x180; status++) {
		assert_int_equal(weft_io_status_to_errno(status), weft_status_to_errno(status));
		assert_ptr_equal(weft_io_status_text(status), weft_status_text(status));
	}
}

/* --- directions ------------------------------------------------------------------------------- */

static void direction(void **state)
{
	static const struct {
		uint8_t opcode, fctype;
		enum nvme_direction direction;
	} cases[] = {
		{ nvme_cmd_flush, 0, NVME_DIR_NONE },
		{ nvme_cmd_write, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_read, 0, NVME_DIR_TO_HOST },
		{ nvme_cmd_compare, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_write_zeroes, 0, NVME_DIR_NONE },
		{ nvme_cmd_dsm, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_copy, 0, NVME_DIR_TO_CTRL },
		{ nvme_admin_identify, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_get_log_page, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_abort_cmd, 0, NVME_DIR_NONE },
		{ nvme_admin_set_features, 0, NVME_DIR_TO_CTRL },
		{ nvme_admin_get_features, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_async_event, 0, NVME_DIR_NONE },
		{ nvme_admin_keep_alive, 0, NVME_DIR_NONE },
		{ 0xff, 0, NVME_DIR_BOTH },
		{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_SET, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, NVMF_CONNECT, NVME_DIR_TO_CTRL },
		{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_GET, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, NVMF_DISCONNECT, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, 0x06, NVME_DIR_TO_HOST },
	};

	for_each_row(i, cases) {
		union nvme_sqe sqe = { .connect.opcode = cases[i].opcode,
				       .connect.fctype = cases[i].fctype };

		if (nvme_cmd_direction(&sqe) != cases[i].direction)
			fail_msg("opcode %#x, type %#x: %u", cases[i].opcode, cases[i].fctype,
				 nvme_cmd_direction(&sqe));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_from_errno),
		cmocka_unit_test(status_text),
		cmocka_unit_test(io_status),
		cmocka_unit_test(direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
