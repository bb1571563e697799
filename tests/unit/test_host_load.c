/* test_host_load.c - many commands at once against Weft's own target (io_job.h), also while
 * connections are reset and namespaces come and go. */
#include "io_job.h"

enum { CREWS_MAX = 4, RESETS = 20 };

/* --- the cases -------------------------------------------------------------------------------- */

static struct io_job jobs[CREWS_MAX];

static void one_crew(const char *words, bool by_fd)
{
	struct weft_ctrl *ctrl = connect_with(words);
	struct weft_ns *ns = open_ns(ctrl, NS_512);

	io_job_init(&jobs[0], ctrl, ns, 0);
	jobs[0].by_fd = by_fd;
	io_job_run(&jobs[0]);
	io_job_end(&jobs[0]);
	weft_ns_close(ns);
	weft_disconnect(ctrl);
}

static void plain(void **state)
{
	one_crew("", false);
}

#ifndef TARGET_ON_FABRIC /* RDMA has none */
static void with_digests(void **state)
{
	one_crew("?hdgst&ddgst", false);
}
#endif

/* More commands than the queue holds. */
static void shallow(void **state)
{
	one_crew("?depth=3", false);
}

static void in_a_poll_loop(void **state)
{
	one_crew("?depth=8", true);
}

static void several_threads(void **state)
{
	struct weft_ctrl *ctrl = connect_with("");
	struct weft_ns *ns = open_ns(ctrl, NS_512);
	unsigned n = NS_BYTES / (WIDE_BYTES + RANGES * RANGE_BYTES);

	for (unsigned i = 0; i < n; i++) {
		io_job_init(&jobs[i], ctrl, ns, i);
		jobs[i].by_fd = i % 2;
		need(!pthread_create(&jobs[i].thread, NULL, io_job_run, &jobs[i]));
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(jobs[i].thread, NULL);
		io_job_end(&jobs[i]);
	}
	weft_ns_close(ns);
	weft_disconnect(ctrl);
}

static void reset_on(uint32_t nsid)
{
	struct weft_ctrl *ctrl = connect_with("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	struct weft_ns *ns = open_ns(ctrl, nsid);
	struct weft_ctrl_info info;

	atomic_store(&io_job_more, true);
	for (unsigned i = 0; i < 2; i++) {
		io_job_init(&jobs[i], ctrl, ns, i);
		jobs[i].by_fd = i;
		need(!pthread_create(&jobs[i].thread, NULL, io_job_run, &jobs[i]));
	}
	for (uint64_t i = 0; i < RESETS; i++) {
		weft_ctrl_reset(ctrl);
		for (info.reconnects = 0; info.reconnects <= i; weft_ctrl_info(ctrl, &info))
			usleep(1000);
	}
	atomic_store(&io_job_more, false);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(jobs[i].thread, NULL);
		io_job_end(&jobs[i]);
	}
	weft_ns_close(ns);
	weft_disconnect(ctrl);
}

/* Every command is completed once, with the right data, however often the connection goes. */
static void reset_under_load(void **state)
{
	reset_on(NS_512);
}

/* Storage that takes its time: a write that a lost connection left there must not end after it was
 * sent again and overwritten. */
static void reset_on_a_file(void **state)
{
	char spec[80], name[] = "/tmp/weft-load-XXXXXX";
	int fd = mkstemp(name);

	need(fd >= 0);
	snprintf(spec, sizeof(spec), "file:%s,size=16M", name);
	target_ns_add(NS_FILE, spec, 512, NULL);
	for (int i = 0; i < 4; i++)
		reset_on(NS_FILE);
	target_ns_remove(NS_FILE);
	close(fd);
	unlink(name);
}

/* --- commands that must not be repeated ------------------------------------------------------- */

static void count(struct weft_cmd *cmd)
{
	++*(unsigned *)cmd->user;
}

/* COPY ends well, or with -ECONNRESET; what waits behind it is done either way. */
static void reset_and_copy(void **state)
{
	struct host h = host_open("?depth=4&reconnect_delay=1ms", NS_512);
	enum { COPIES = 64 };
	struct weft_cmd cmds[COPIES];
	unsigned done = 0;

	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < COPIES; i++) {
			cmds[i] = (struct weft_cmd){ .op = WEFT_COPY,
						     .ns = h.ns,
						     .offset = 8 << 20,
						     .length = 64 << 10,
						     .copy_from = i << 10,
						     .done = count,
						     .user = &done };
			assert_int_equal(weft_submit(h.queue, &cmds[i]), 0);
		}
		weft_queue_poll(h.queue, 0);
		weft_ctrl_reset(h.ctrl);
		while (weft_queue_pending(h.queue))
			weft_queue_poll(h.queue, -1);
		for (unsigned i = 0; i < COPIES; i++)
			assert_true(cmds[i].rc == 0 || cmds[i].rc == -ECONNRESET);
		assert_int_equal(done, (round + 1) * COPIES);
	}
	host_close(&h);
}

/* However soon it is live again. */
static void await_loss(struct weft_ctrl *ctrl)
{
	struct weft_event event;

	while (!weft_ctrl_next_event(ctrl, &event) || event.kind != WEFT_EVENT_STATE ||
	       event.state == WEFT_LIVE)
		usleep(100);
}

/* The slot that Connect had is the one that the next command needs. */
static void reset_one_slot(void **state)
{
	struct host h = host_open("?depth=1&reconnect_delay=1ms", NS_512);
	static char memory[8][512];
	struct weft_cmd cmds[8];
	struct iovec iov[8];
	unsigned done = 0;

	for (unsigned i = 0; i < COUNT(cmds); i++) {
		iov[i] = (struct iovec){ memory[i], sizeof(memory[i]) };
		cmds[i] = (struct weft_cmd){ .op = WEFT_READ,
					     .ns = h.ns,
					     .length = sizeof(memory[i]),
					     .iov = &iov[i],
					     .iovcnt = 1,
					     .done = count,
					     .user = &done };
		assert_int_equal(weft_submit(h.queue, &cmds[i]), 0);
	}
	weft_ctrl_reset(h.ctrl);
	await_loss(h.ctrl);
	while (weft_queue_pending(h.queue))
		weft_queue_poll(h.queue, -1);
	assert_int_equal(done, COUNT(cmds));
	host_close(&h);
}

/* --- things that come and go ------------------------------------------------------------------ */

enum { READERS = 32, VISITS = 12, VISITORS = 3 };

static unsigned reading;

static void read_again(struct weft_cmd *cmd)
{
	need(cmd->rc <= 0);
	if (cmd->rc < 0 || weft_submit(cmd->user, cmd) < 0)
		reading--;
}

/* A namespace that is removed under load fails what is in flight, and nothing else. */
static void namespace_vanishes(void **state)
{
	struct host h = host_open("?depth=16", NS_512);
	static char memory[READERS][4096];
	struct weft_cmd cmds[READERS];
	struct iovec iov[READERS];
	struct weft_ns *ns;

	target_ns_add(7, "mem:1M", 512, NULL);
	ns = open_ns(h.ctrl, 7);
	reading = READERS;
	for (unsigned i = 0; i < READERS; i++) {
		iov[i] = (struct iovec){ memory[i], sizeof(memory[i]) };
		cmds[i] = (struct weft_cmd){ .op = WEFT_READ,
					     .ns = ns,
					     .offset = i * sizeof(memory[i]),
					     .length = sizeof(memory[i]),
					     .iov = &iov[i],
					     .iovcnt = 1,
					     .done = read_again,
					     .user = h.queue };
		assert_int_equal(weft_submit(h.queue, &cmds[i]), 0);
	}
	for (unsigned i = 0; i < 20; i++)
		weft_queue_poll(h.queue, -1);
	assert_int_equal(reading, READERS);
	target_ns_remove(7);
	while (reading)
		weft_queue_poll(h.queue, -1);
	assert_int_equal(weft_queue_pending(h.queue), 0);
	assert_int_equal(weft_read(h.queue, h.ns, memory[0], 4096, 0, NULL), 0);
	weft_ns_close(ns);
	host_close(&h);
}

static void visit(struct weft_ctrl *ctrl)
{
	struct weft_err err = { "" };
	struct weft_queue *queue;
	struct weft_ns *ns;
	char block[512], page[4096];
	uint32_t nsids[4];

	if (weft_queue_open(ctrl, &queue, &err) == 0) {
		if (weft_ns_open(ctrl, NS_512, &ns, &err) == 0) {
			need(weft_read(queue, ns, block, sizeof(block), 0, &err) == 0);
			weft_ns_close(ns);
		}
		weft_queue_close(queue);
	}
	weft_identify(ctrl, 1, 0, page, &err);
	weft_ns_list(ctrl, nsids, 4, &err);
}

static void *visit_often(void *arg)
{
	for (unsigned i = 0; i < VISITS; i++)
		visit(arg);
	return NULL;
}

static void *reset_often(void *arg)
{
	struct weft_event event;

	while (atomic_load(&io_job_more)) {
		weft_ctrl_reset(arg);
		usleep(5000);
		while (weft_ctrl_next_event(arg, &event))
			;
	}
	return NULL;
}

/* Queues and namespaces are opened and closed while the connection comes and goes. */
static void opened_under_resets(void **state)
{
	struct weft_ctrl *ctrl = connect_with("?reconnect_delay=1ms&reconnect_delay_max=5ms");
	pthread_t threads[VISITORS], resetter;

	atomic_store(&io_job_more, true);
	need(!pthread_create(&resetter, NULL, reset_often, ctrl));
	for (unsigned i = 0; i < VISITORS; i++)
		need(!pthread_create(&threads[i], NULL, visit_often, ctrl));
	for (unsigned i = 0; i < VISITORS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&io_job_more, false);
	pthread_join(resetter, NULL);
	visit(ctrl);
	weft_disconnect(ctrl);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
#ifndef TARGET_ON_FABRIC
		cmocka_unit_test(with_digests),
#endif
		cmocka_unit_test(shallow),
		cmocka_unit_test(in_a_poll_loop),
		cmocka_unit_test(several_threads),
		cmocka_unit_test(reset_under_load),
		cmocka_unit_test(reset_on_a_file),
		cmocka_unit_test(reset_and_copy),
		cmocka_unit_test(reset_one_slot),
		cmocka_unit_test(namespace_vanishes),
		cmocka_unit_test(opened_under_resets),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
