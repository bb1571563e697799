/* test_host.c - the host library against Weft's own target: every operation, what is refused, and
 * namespaces that come and go. test_host_load.c has many at once. */
#include "host_case.h"

#include <poll.h>

#include "proto/nvme.h"
#include "running.h"

static char data[4 << 20], back[4 << 20];

static void fill(char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		buf[i] = (char)(seed >> 16);
	}
}

/* --- one at a time ---------------------------------------------------------------------------- */

static const struct {
	const char *words;
	uint32_t nsid;
} ways[] = {
	{ "", NS_512 },
	{ "", NS_4K },
	{ "?hdgst=1&ddgst=1", NS_512 },
	{ "?ddgst", NS_4K },
	{ "?depth=1&queues=1", NS_512 },
	{ "?kato=0", NS_512 },
};

static const struct {
	uint64_t offset, length;
} ranges[] = {
	{ 0, 4096 },      { 4096, 12288 },      { NS_BYTES - 4096, 4096 },
	{ 8192, 131072 }, { 1 << 20, 1 << 20 }, { 3 << 20, (4 << 20) - 4096 }, /* split */
};

static void write_then_read(void **state)
{
	struct weft_err err = { "" };

	for_each_named(i, ways, words) {
		bool digests = strstr(ways[i].words, "dgst");
		struct host h = host_open(digests && on_rdma() ? "" : ways[i].words, ways[i].nsid);

		for_each_row(j, ranges) {
			uint64_t len = ranges[j].length, at = ranges[j].offset;

			fill(data, len, (unsigned)(i * 100 + j));
			memset(back, 0, len);
			assert_int_equal(weft_write(h.queue, h.ns, data, len, at, 0, &err), 0);
			assert_int_equal(weft_flush(h.queue, h.ns, &err), 0);
			assert_int_equal(weft_read(h.queue, h.ns, back, len, at, &err), 0);
			assert_memory_equal(data, back, len);
		}
		assert_string_equal(err.text, "");
		host_close(&h);
	}
}

static void zero_and_trim(void **state)
{
	struct host h = host_open("", NS_512);
	struct weft_err err = { "" };

	memset(data, 0x5a, sizeof(data));
	assert_int_equal(weft_write(h.queue, h.ns, data, 3 << 20, 0, WEFT_FUA, &err), 0);
	assert_int_equal(weft_zero(h.queue, h.ns, (2 << 20) + 512, 512, 0, &err), 0);
	assert_int_equal(weft_zero(h.queue, h.ns, 512, (2 << 20) + 2048, WEFT_UNMAP, &err), 0);
	assert_int_equal(weft_trim(h.queue, h.ns, 512, 4096, &err), 0);
	assert_int_equal(weft_read(h.queue, h.ns, back, 3 << 20, 0, &err), 0);
	memset(data + 512, 0, (2 << 20) + 512);
	memset(data + (2 << 20) + 2048, 0, 512);
	assert_memory_equal(data, back, 3 << 20);
	host_close(&h);
}

static struct weft_cmd command(struct host *h, enum weft_op_code op, uint64_t offset,
			       uint64_t length, struct iovec *iov)
{
	return (struct weft_cmd){ .op = op,
				  .ns = h->ns,
				  .offset = offset,
				  .length = length,
				  .iov = iov,
				  .iovcnt = iov ? 1 : 0 };
}

static void compare_and_verify(void **state)
{
	struct host h = host_open("", NS_512);
	struct iovec iov = { data, sizeof(data) };
	struct weft_cmd cmd = command(&h, WEFT_COMPARE, 0, 2 << 20, &iov);
	struct weft_err err = { "" };

	fill(data, 2 << 20, 1);
	assert_int_equal(weft_write(h.queue, h.ns, data, 2 << 20, 0, 0, NULL), 0);
	assert_int_equal(weft_run(h.queue, &cmd, NULL), 0);
	data[(2 << 20) - 1] ^= 1;
	assert_int_equal(weft_run(h.queue, &cmd, &err), -EILSEQ);
	assert_int_equal(cmd.status & 0x7ff, 0x285);
	assert_string_equal(err.text, "Compare of 2097152 bytes at 0: compare failure (NVMe status "
				      "0x285)");
	cmd = command(&h, WEFT_VERIFY, 0, NS_BYTES, NULL);
	assert_int_equal(weft_run(h.queue, &cmd, NULL), 0);
	host_close(&h);
}

static void copy(void **state)
{
	struct host h = host_open("", NS_4K);
	struct weft_cmd cmd = command(&h, WEFT_COPY, 8 << 20, 3 << 20, NULL);

	fill(data, 3 << 20, 2);
	assert_int_equal(weft_write(h.queue, h.ns, data, 3 << 20, 4096, 0, NULL), 0);
	cmd.copy_from = 4096;
	cmd.flags = WEFT_FUA;
	assert_int_equal(weft_run(h.queue, &cmd, NULL), 0);
	assert_int_equal(weft_read(h.queue, h.ns, back, 3 << 20, 8 << 20, NULL), 0);
	assert_memory_equal(data, back, 3 << 20);
	host_close(&h);
}

static void compare_and_write(void **state)
{
	struct host h = host_open("", NS_512);
	struct iovec iov[3] = { { data, 100 }, { data + 100, 412 }, { back, 512 } };
	struct weft_cmd cmd = command(&h, WEFT_COMPARE_AND_WRITE, 4096, 512, iov);
	char now[512];

	cmd.iovcnt = 3;
	fill(data, 512, 3);
	fill(back, 512, 4);
	assert_int_equal(weft_write(h.queue, h.ns, data, 512, 4096, 0, NULL), 0);
	assert_int_equal(weft_run(h.queue, &cmd, NULL), 0);
	assert_int_equal(weft_read(h.queue, h.ns, now, 512, 4096, NULL), 0);
	assert_memory_equal(now, back, 512);
	fill(data + 512, 512, 5);
	iov[2].iov_base = data + 512;
	assert_int_equal(weft_run(h.queue, &cmd, NULL), -EILSEQ);
	assert_int_equal(weft_read(h.queue, h.ns, now, 512, 4096, NULL), 0);
	assert_memory_equal(now, back, 512);
	host_close(&h);
}

/* A fused pair needs two slots at once. */
static void compare_and_write_alone(void **state)
{
	struct host h = host_open("?depth=1", NS_512);
	struct iovec iov = { data, 1024 };
	struct weft_cmd cmd = command(&h, WEFT_COMPARE_AND_WRITE, 0, 512, &iov);

	assert_int_equal(weft_submit(h.queue, &cmd), -EOPNOTSUPP);
	host_close(&h);
}

static void raw(void **state)
{
	struct host h = host_open("", NS_512);
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nlb = cpu_to_le16(7) } };
	struct iovec iov[2] = { { data, 1000 }, { data + 1000, 3096 } };
	struct weft_cmd cmd = {
		.op = WEFT_RAW, .sqe = &sqe, .iov = iov, .iovcnt = 2, .length = 4096
	};
	struct weft_err err = { "" };

	sqe.rw.nsid = cpu_to_le32(NS_512);
	sqe.rw.slba = cpu_to_le64(16);
	fill(data, 4096, 6);
	assert_int_equal(weft_run(h.queue, &cmd, NULL), 0);
	assert_int_equal(cmd.moved, 4096);
	assert_int_equal(weft_read(h.queue, h.ns, back, 4096, 8192, NULL), 0);
	assert_memory_equal(data, back, 4096);
	sqe.rw.slba = cpu_to_le64(NS_BYTES / 512);
	assert_int_equal(weft_run(h.queue, &cmd, &err), -ERANGE);
	assert_string_equal(err.text, "command: LBA out of range (NVMe status 0x80)");
	host_close(&h);
}

static bool is_unflushed(struct weft_ns *ns)
{
	struct weft_ns_info info;

	weft_ns_info(ns, &info);
	assert_true(info.shared);
	return info.unflushed;
}

/* Through whichever weft_ns of the namespace it was written. */
static void unflushed(void **state)
{
	struct host h = host_open("", NS_512);
	struct weft_ns *other = open_ns(h.ctrl, NS_512);

	assert_false(is_unflushed(h.ns));
	assert_int_equal(weft_write(h.queue, h.ns, data, 512, 0, WEFT_FUA, NULL), 0);
	assert_false(is_unflushed(h.ns));
	assert_int_equal(weft_write(h.queue, h.ns, data, 512, 0, 0, NULL), 0);
	assert_true(is_unflushed(h.ns) && is_unflushed(other));
	assert_int_equal(weft_flush(h.queue, other, NULL), 0);
	assert_false(is_unflushed(h.ns) || is_unflushed(other));
	weft_ns_close(other);
	host_close(&h);
}

/* --- what is refused -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t nsid;
	enum weft_op_code op;
	uint64_t offset, length;
	size_t memory;
	unsigned flags;
	int rc;
} refusals[] = {
	{ "offset within a block", NS_512, WEFT_READ, 1, 512, 512, 0, -EINVAL },
	{ "length within a block", NS_512, WEFT_READ, 0, 513, 4096, 0, -EINVAL },
	{ "the other block size", NS_4K, WEFT_READ, 512, 4096, 4096, 0, -EINVAL },
	{ "nothing", NS_512, WEFT_READ, 0, 0, 512, 0, -EINVAL },
	{ "too little memory", NS_512, WEFT_READ, 0, 1024, 1023, 0, -EINVAL },
	{ "no memory", NS_512, WEFT_WRITE, 0, 512, 0, 0, -EINVAL },
	{ "half of a pair", NS_512, WEFT_COMPARE_AND_WRITE, 0, 512, 1023, 0, -EINVAL },
	{ "a long pair", NS_512, WEFT_COMPARE_AND_WRITE, 0, 2 << 20, 4 << 20, 0, -EMSGSIZE },
	{ "read with FUA", NS_512, WEFT_READ, 0, 512, 512, WEFT_FUA, -EINVAL },
	{ "unknown flag", NS_512, WEFT_ZERO, 0, 512, 0, 1 << 7, -EINVAL },
	{ "unknown operation", NS_512, WEFT_RAW + 1, 0, 512, 512, 0, -EINVAL },
	{ "raw without a command", NS_512, WEFT_RAW, 0, 512, 512, 0, -EINVAL },
	{ "behind the end", NS_512, WEFT_READ, NS_BYTES, 512, 512, 0, -ERANGE },
	{ "over the end", NS_512, WEFT_ZERO, NS_BYTES - 512, 1024, 0, 0, -ERANGE },
	{ "far behind the end", NS_512, WEFT_TRIM, UINT64_MAX - 511, 512, 0, 0, -ERANGE },
	{ "longer than anything", NS_512, WEFT_TRIM, 512, UINT64_MAX - 511, 0, 0, -ERANGE },
	{ "write to a read-only one", NS_RO, WEFT_WRITE, 0, 512, 512, 0, -EROFS },
	{ "zero a read-only one", NS_RO, WEFT_ZERO, 0, 512, 0, 0, -EROFS },
	{ "trim a read-only one", NS_RO, WEFT_TRIM, 0, 512, 0, 0, -EROFS },
	{ "copy in a read-only one", NS_RO, WEFT_COPY, 0, 512, 0, 0, -EROFS },
};

static void never(struct weft_cmd *cmd)
{
	fail_msg("done() of a command that was refused");
}

static void refused(void **state)
{
	struct host h = host_open("", NS_512);
	struct weft_ns *ns[] = { NULL, h.ns, open_ns(h.ctrl, NS_4K), open_ns(h.ctrl, NS_RO) };

	for_each_named(i, refusals, name) {
		struct iovec iov = { data, refusals[i].memory };
		struct weft_cmd cmd = command(&h, refusals[i].op, refusals[i].offset,
					      refusals[i].length, &iov);
		int rc;

		cmd.ns = ns[refusals[i].nsid];
		cmd.flags = refusals[i].flags;
		cmd.done = never;
		rc = weft_submit(h.queue, &cmd);
		if (rc != refusals[i].rc)
			fail_msg("%s: %d, not %d", refusals[i].name, rc, refusals[i].rc);
	}
	assert_int_equal(weft_queue_pending(h.queue), 0);
	assert_int_equal(weft_queue_poll(h.queue, 0), 0);
	weft_ns_close(ns[2]);
	weft_ns_close(ns[3]);
	host_close(&h);
}

static const struct {
	const char *what, *uri; /* or what follows the target's address */
	int rc;
	const char *why; /* its end */
} strangers[] = {
	{ "nobody listens", "nvme+tcp://127.0.0.1:1/" TARGET_NQN, -ECONNREFUSED,
	  "Connection refused" },
	{ "port 0", "nvme+tcp://127.0.0.1:0", -EINVAL, "a target does not listen on port 0" },
	{ "no such subsystem", "/nqn.2026-11.io.weft:nowhere", -EINVAL,
	  "Connect: the target has no subsystem nqn.2026-11.io.weft:nowhere (NVMe status 0x182)" },
	{ "unknown word", "?hurry", -EINVAL, "" },
};

static void not_connected(void **state)
{
	for_each_named(i, strangers, what) {
		struct weft_err err = { "" };
		struct weft_ctrl *ctrl = NULL;
		char uri[256];
		int rc;

		snprintf(uri, sizeof(uri), "%s%s", *strangers[i].uri == 'n' ? "" : target_address(),
			 strangers[i].uri);
		rc = weft_connect(uri, NULL, &ctrl, &err);
		if (rc != strangers[i].rc || ctrl || !strstr(err.text, strangers[i].why))
			fail_msg("%s: %d, %s", strangers[i].what, rc, err.text);
	}
}

static void too_many_queues(void **state)
{
	struct weft_ctrl *ctrl = connect_with("?queues=2");
	struct weft_queue *queues[2] = { open_queue(ctrl), open_queue(ctrl) }, *third = NULL;
	struct weft_err err = { "" };

	assert_int_equal(weft_queue_open(ctrl, &third, &err), -EUSERS);
	assert_string_equal(err.text,
			    "the controller allows 2 I/O queues, and no more is free (see "
			    "queues=)");
	weft_queue_close(queues[0]);
	third = open_queue(ctrl);
	weft_queue_close(third);
	weft_queue_close(queues[1]);
	weft_disconnect(ctrl);
}

/* --- namespaces that change ------------------------------------------------------------------- */

static bool await_event(struct weft_ctrl *ctrl, enum weft_event_kind kind, struct weft_event *event)
{
	struct pollfd pollfd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };

	while (poll(&pollfd, 1, -1) > 0)
		while (weft_ctrl_next_event(ctrl, event))
			if (event->kind == kind)
				return true;
	return false;
}

static int try_read(struct host *h)
{
	return weft_read(h->queue, h->ns, back, 512, 0, NULL);
}

/* Changes come with an event, and the rescan is over by then. */
static void namespace_leaves(void **state)
{
	static const char uuid[] = "11111111-2222-4333-8444-555555555555";
	struct weft_event event;
	struct host h;

	target_ns_add(7, "mem:1M", 512, uuid);
	h = host_open("", 7);
	assert_int_equal(try_read(&h), 0);
	target_ns_remove(7);
	assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	assert_int_equal(try_read(&h), -ENODEV);
	target_ns_add(7, "mem:1M", 512, uuid);
	assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	assert_int_equal(try_read(&h), 0);
	target_ns_remove(7);
	assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	host_close(&h);
}

static void namespace_replaced(void **state)
{
	struct weft_event event;
	struct host h;

	target_ns_add(8, "mem:1M", 512, "11111111-2222-4333-8444-555555555555");
	h = host_open("", 8);
	target_ns_remove(8);
	target_ns_add(8, "mem:1M", 512, "66666666-2222-4333-8444-555555555555");
	while (try_read(&h) != -ESTALE)
		assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	target_ns_remove(8);
	assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	assert_int_equal(try_read(&h), -ESTALE);
	host_close(&h);
}

static void namespace_grows(void **state)
{
	struct weft_ns_info info;
	struct weft_event event;
	struct host h;

	target_ns_add(9, "mem:1M", 512, NULL);
	h = host_open("", 9);
	assert_int_equal(weft_read(h.queue, h.ns, back, 512, 1 << 20, NULL), -ERANGE);
	target_ns_resize(9, 2 << 20);
	assert_true(await_event(h.ctrl, WEFT_EVENT_NAMESPACES, &event));
	weft_ns_info(h.ns, &info);
	assert_int_equal(info.size, 2 << 20);
	assert_int_equal(weft_read(h.queue, h.ns, back, 512, 1 << 20, NULL), 0);
	host_close(&h);
	target_ns_remove(9);
}

static void namespace_list(void **state)
{
	struct weft_ctrl *ctrl = connect_with("");
	uint32_t nsids[2] = { 0 }, all[8];
	struct weft_ns_info info;
	struct weft_ns *ns;
	struct weft_err err = { "" };

	assert_int_equal(weft_ns_list(ctrl, nsids, 2, NULL), 3);
	assert_int_equal(weft_ns_list(ctrl, all, 8, NULL), 3);
	assert_int_equal(nsids[1], NS_4K);
	assert_int_equal(all[2], NS_RO);
	ns = open_ns(ctrl, NS_RO);
	weft_ns_info(ns, &info);
	assert_true(info.read_only && info.block_size == 512 && info.size == 1 << 20);
	assert_int_equal(strlen(info.uuid), 36);
	weft_ns_close(ns);
	assert_int_equal(weft_ns_open(ctrl, 77, &ns, &err), -ENODEV);
	weft_disconnect(ctrl);
}

/* --- the controller --------------------------------------------------------------------------- */

static void states(void **state)
{
	struct host h = host_open("", NS_512);
	struct weft_ctrl_info info;
	struct weft_event event;
	struct weft_err why = { "" };

	assert_int_equal(weft_ctrl_state(h.ctrl, &why), WEFT_LIVE);
	assert_string_equal(why.text, "");
	while (weft_ctrl_next_event(h.ctrl, &event))
		;
	weft_ctrl_reset(h.ctrl);
	assert_true(await_event(h.ctrl, WEFT_EVENT_STATE, &event));
	assert_int_equal(event.state, WEFT_RESETTING);
	while (event.state != WEFT_LIVE)
		assert_true(await_event(h.ctrl, WEFT_EVENT_STATE, &event));
	assert_int_equal(try_read(&h), 0);
	assert_int_equal(weft_ctrl_state(h.ctrl, &why), WEFT_LIVE);
	assert_string_equal(why.text, "reset by the program");
	weft_ctrl_info(h.ctrl, &info);
	assert_int_equal(info.reconnects, 1);
	assert_string_equal(info.subnqn, TARGET_NQN);
	assert_true(info.can_compare && info.can_zero && info.can_trim && info.can_verify &&
		    info.can_copy && info.can_fuse);
	host_close(&h);
}

static void admin(void **state)
{
	struct weft_ctrl *ctrl = connect_with("");
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_identify } };
	struct nvme_id_ctrl id;
	struct weft_err err = { "" };
	uint64_t result = 1;
	uint32_t moved = 0;

	sqe.common.cdw10 = cpu_to_le32(NVME_IDENTIFY_CNS_CTRL);
	assert_int_equal(weft_admin_moved(ctrl, &sqe, &id, sizeof(id), NULL, &moved, &err), 0);
	assert_int_equal(moved, sizeof(id));
	assert_int_equal(weft_admin(ctrl, &sqe, &id, sizeof(id), &result, &err), 0);
	assert_int_equal(result, 0);
	assert_memory_equal(id.mn, "Weft", 4);
	sqe.common.cdw10 = cpu_to_le32(0xee);
	assert_int_equal(weft_admin(ctrl, &sqe, &id, sizeof(id), NULL, &err) & 0x7ff, 0x002);
	assert_string_equal(err.text, "admin command: invalid field (NVMe status 0x2)");
	assert_int_equal(weft_identify(ctrl, NVME_IDENTIFY_CNS_CTRL, 0, &id, NULL), 0);
	assert_int_equal(weft_log_page(ctrl, 2, 0xffffffff, 0, &id, 512, NULL), 0);
	assert_int_equal(weft_log_page(ctrl, 2, 0xffffffff, 0, &id, 3, NULL), -EINVAL);
	assert_true(weft_log_page(ctrl, 0xee, 0, 0, &id, 512, NULL) < 0);
	weft_disconnect(ctrl);
}

static void discovery(void **state)
{
	struct weft_discovery log;
	struct weft_queue *queue = NULL;
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;
	bool found = false;

	assert_int_equal(weft_discover(target_address(), NULL, &log, &err), 0);
	for (unsigned i = 0; i < log.count; i++)
		found |= !strcmp(log.entries[i].subnqn, TARGET_NQN) &&
			 log.entries[i].subtype == 2 &&
			 !strncmp(log.entries[i].uri, target_address(), strlen(target_address()));
	assert_true(found);
	weft_discovery_free(&log);
	assert_int_equal(weft_connect(target_address(), NULL, &ctrl, NULL), 0);
	assert_int_equal(weft_queue_open(ctrl, &queue, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "a discovery controller has no I/O queues");
	assert_int_equal(weft_discovery_read(ctrl, &log, NULL), 0);
	weft_discovery_free(&log);
	weft_disconnect(ctrl);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_then_read),
		cmocka_unit_test(zero_and_trim),
		cmocka_unit_test(compare_and_verify),
		cmocka_unit_test(copy),
		cmocka_unit_test(compare_and_write),
		cmocka_unit_test(compare_and_write_alone),
		cmocka_unit_test(raw),
		cmocka_unit_test(unflushed),
		cmocka_unit_test(refused),
		cmocka_unit_test(not_connected),
		cmocka_unit_test(too_many_queues),
		cmocka_unit_test(namespace_leaves),
		cmocka_unit_test(namespace_replaced),
		cmocka_unit_test(namespace_grows),
		cmocka_unit_test(namespace_list),
		cmocka_unit_test(states),
		cmocka_unit_test(admin),
		cmocka_unit_test(discovery),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
