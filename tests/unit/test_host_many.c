/* test_host_many.c - many open namespaces: an event costs what has changed, a new connection one look
 * at each. What is done is counted, not timed: commands, and how often somebody works out whether I/O
 * may go through a path. */
#include "host_case.h"

#include <poll.h>
#include <stdatomic.h>

#include "host/internal.h"

enum { FIRST = 10, MOST = 300 };

static atomic_uint identifies, worked_out;

void __real_host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
void __wrap_host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
uint8_t __real_host_ana_state(const struct host_path *path, uint32_t group);
uint8_t __wrap_host_ana_state(const struct host_path *path, uint32_t group);

void __wrap_host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms)
{
	identifies += a->cmd.common.opcode == nvme_admin_identify;
	__real_host_admin_start(path, a, timeout_ms);
}

uint8_t __wrap_host_ana_state(const struct host_path *path, uint32_t group)
{
	worked_out++;
	return __real_host_ana_state(path, group);
}

static void await(struct weft_ctrl *ctrl, enum weft_event_kind kind, enum weft_state state)
{
	struct pollfd pollfd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };
	struct weft_event event;

	while (poll(&pollfd, 1, -1) > 0)
		while (weft_ctrl_next_event(ctrl, &event))
			if (event.kind == kind && event.state == state)
				return;
}

static const unsigned counts[] = { 1, 100, MOST };
static struct weft_ns *spaces[MOST];

static struct weft_ctrl *open_many(unsigned count)
{
	struct weft_ctrl *ctrl = connect_with("?kato=0");

	for (unsigned i = 0; i < count; i++)
		spaces[i] = open_ns(ctrl, FIRST + i);
	identifies = worked_out = 0;
	return ctrl;
}

static void close_many(struct weft_ctrl *ctrl, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		weft_ns_close(spaces[i]);
	weft_disconnect(ctrl);
}

/* Identify Namespace and its descriptors, of the one that has grown. */
static void one_changes(void **state)
{
	struct weft_ns_info info;
	struct weft_ctrl *ctrl;

	for_each_row(i, counts) {
		ctrl = open_many(counts[i]);
		target_ns_resize(FIRST, (i + 2) << 20);
		await(ctrl, WEFT_EVENT_NAMESPACES, WEFT_LIVE);
		weft_ns_info(spaces[0], &info);
		assert_int_equal(info.size, (i + 2) << 20);
		assert_int_equal(identifies, 2);
		assert_in_range(worked_out, 1, 4);
		close_many(ctrl, counts[i]);
	}
}

static void each_is_looked_at(void **state)
{
	struct weft_ctrl *ctrl;

	for_each_row(i, counts) {
		ctrl = open_many(counts[i]);
		weft_ctrl_reset(ctrl);
		await(ctrl, WEFT_EVENT_STATE, WEFT_LIVE);
		assert_in_range(identifies, 2 * counts[i], 2 * counts[i] + 8);
		close_many(ctrl, counts[i]);
	}
}

/* The program's own reading of the list leaves nothing in it: then all are looked at. A look
 * concerns one of them. */
static void list_was_read(void **state)
{
	struct weft_ctrl *ctrl = open_many(100);
	static __le32 page[1024];

	assert_int_equal(weft_log_page(ctrl, NVME_LOG_LID_CHANGED_NS, NVME_NSID_BROADCAST, 0, page,
				       sizeof(page), NULL),
			 0);
	target_ns_resize(FIRST, 8 << 20);
	await(ctrl, WEFT_EVENT_NAMESPACES, WEFT_LIVE);
	assert_int_equal(identifies, 200);
	assert_in_range(worked_out, 100, 400);
	identifies = 0;
	target_ns_resize(FIRST, 9 << 20);
	await(ctrl, WEFT_EVENT_NAMESPACES, WEFT_LIVE);
	assert_int_equal(identifies, 2);
	close_many(ctrl, 100);
}

/* A record goes with the last who has it open, unless something was written and not flushed. */
static void records_go(void **state)
{
	struct weft_ctrl *ctrl = open_many(100);
	struct weft_queue *queue = open_queue(ctrl);
	struct weft_ctrl_info info;
	static char data[4096];

	weft_ctrl_info(ctrl, &info);
	assert_int_equal(ctrl->ns_records_by_id.count, 100);
	assert_int_equal(weft_write(queue, spaces[7], data, sizeof(data), 0, 0, NULL), 0);
	for (unsigned i = 0; i < 100; i++)
		weft_ns_close(spaces[i]);
	assert_int_equal(ctrl->ns_records_by_id.count, info.volatile_cache);
	weft_queue_close(queue);
	weft_disconnect(ctrl);
}

static int start_many(void **state)
{
	start_target(state);
	for (unsigned i = 0; i < MOST; i++)
		target_ns_add(FIRST + i, "mem:1M", 512, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_changes),
		cmocka_unit_test(each_is_looked_at),
		cmocka_unit_test(list_was_read),
		cmocka_unit_test(records_go),
	};

	return cmocka_run_group_tests(tests, start_many, end_target);
}
