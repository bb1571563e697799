/* test_rdma_host_target.c - the host library and the target, both on the fabric, and what fabrics
 * do to them: data arrives as it left, however often the connection is lost; what is declared is
 * never copied, what was told to the adapter once is not told again. */
#include "host_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <weft/memory.h>

#include "fabric/fabric.h"
#include "running.h"

enum { MOST = 4 << 20, TRIES_MAX = 20000 };

#define WORDS "?reconnect_delay=1ms&reconnect_delay_max=5ms"

static const uint32_t sizes[] = { 512,    1024,   4096,    4608,    8192,       65536,
				  131072, 131584, 1 << 20, 1049088, MOST - 512, MOST };

static void fill(char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		buf[i] = (char)(seed >> 16);
	}
}

static void check_io(struct host *h, char *data, char *back, size_t len, unsigned seed)
{
	struct weft_err err = { "" };

	fill(data, len, seed);
	memset(back, 0, len);
	if (weft_write(h->queue, h->ns, data, len, 8192, 0, &err) < 0 ||
	    weft_read(h->queue, h->ns, back, len, 8192, &err) < 0)
		fail_msg("%zu bytes: %s", len, err.text);
	assert_memory_equal(data, back, len);
}

static struct weft_queue_stats stats_of(const struct host *h)
{
	struct weft_queue_stats stats;

	weft_queue_stats(h->queue, &stats);
	return stats;
}

/* Since the queue is there: its Connect has data as well. */
static uint64_t copied(const struct host *h, uint64_t since)
{
	return stats_of(h).copied_bytes - since;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void anybodys_memory(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	char *data = malloc(MOST), *back = malloc(MOST);
	uint64_t since = stats_of(&h).copied_bytes;

	for_each_row(i, sizes)
		check_io(&h, data, back, sizes[i], i);
	assert_true(copied(&h, since) > MOST);
	host_close(&h);
	free(data);
	free(back);
}

static void our_memory(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	char *data = weft_memory_alloc(MOST), *back = weft_memory_alloc(MOST);
	uint64_t registrations;
	uint64_t since = stats_of(&h).copied_bytes;

	for_each_row(i, sizes)
		check_io(&h, data, back, sizes[i], i);
	registrations = fabric_counts().registrations;
	for_each_row(i, sizes)
		check_io(&h, data, back, sizes[i], i + 100);
	assert_int_equal(copied(&h, since), 0);
	assert_int_equal(fabric_counts().registrations, registrations);
	assert_int_equal(fabric_counts().rnr, 0);
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

static void declared_memory(void **state)
{
	struct host h = host_open(WORDS, NS_4K);
	char *both = aligned_alloc(4096, 2 * MOST);
	struct weft_err err = { "" };
	uint64_t since = stats_of(&h).copied_bytes;

	assert_int_equal(weft_memory_register(both, 2 * MOST, &err), 0);
	for (uint32_t len = 4096; len <= MOST; len *= 2)
		check_io(&h, both, both + MOST, len, len);
	assert_int_equal(copied(&h, since), 0);
	assert_true(stats_of(&h).key_hits > 0);
	host_close(&h);
	assert_int_equal(weft_memory_unregister(both, &err), 0);
	free(both);
}

/* A device's memory, from an offset on: the CPU never touches it. */
static void dmabuf(void **state)
{
	const off_t from = 8192;
	struct host h = host_open(WORDS, NS_4K);
	int fd = memfd_create("gpu", MFD_CLOEXEC);
	char *there = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);
	char *data = weft_memory_alloc(65536), *back = malloc(65536);
	struct weft_err err = { "" };
	uint64_t since = stats_of(&h).copied_bytes;

	assert_int_equal(ftruncate(fd, from + (1 << 20)), 0);
	assert_int_equal(weft_memory_import_dmabuf(there, 1 << 20, fd, from, &err), 0);
	fill(data, 65536, 5);
	assert_int_equal(weft_write(h.queue, h.ns, data, 65536, 0, 0, &err), 0);
	assert_int_equal(weft_read(h.queue, h.ns, there + 4096, 65536, 0, &err), 0);
	assert_int_equal(pread(fd, back, 65536, from + 4096), 65536);
	assert_memory_equal(data, back, 65536);
	assert_int_equal(copied(&h, since), 0);
	host_close(&h);
	assert_int_equal(weft_memory_unregister(there, &err), 0);
	munmap(there, 1 << 20);
	weft_memory_free(data);
	free(back);
	close(fd);
}

/* --- faults ----------------------------------------------------------------------------------- */

static void for_each_qp(void (*fn)(struct ibv_qp *qp, int arg), int arg)
{
	struct ibv_qp *qp;

	fabric_freeze();
	for (unsigned i = 0; (qp = fabric_qp(i)); i++)
		fn(qp, arg);
	fabric_thaw();
}

static bool is_target(struct ibv_qp *qp)
{
	return qp->srq;
}

static void host_send_fails(struct ibv_qp *qp, int status)
{
	if (!is_target(qp))
		fabric_fail_next(qp, false, (enum ibv_wc_status)status);
}

static void target_send_fails(struct ibv_qp *qp, int status)
{
	if (is_target(qp))
		fabric_fail_next(qp, false, (enum ibv_wc_status)status);
}

static void host_receive_fails(struct ibv_qp *qp, int status)
{
	if (!is_target(qp))
		fabric_fail_next(qp, true, (enum ibv_wc_status)status);
}

static void target_receive_fails(struct ibv_qp *qp, int status)
{
	if (is_target(qp))
		fabric_fail_next(qp, true, (enum ibv_wc_status)status);
}

static void host_hears(struct ibv_qp *qp, int event)
{
	if (!is_target(qp))
		fabric_event(fabric_id_of(qp), (enum rdma_cm_event_type)event, 0);
}

static void target_hears(struct ibv_qp *qp, int event)
{
	if (is_target(qp))
		fabric_event(fabric_id_of(qp), (enum rdma_cm_event_type)event, 0);
}

static const struct {
	const char *name;
	void (*fn)(struct ibv_qp *qp, int arg);
	int arg;
} faults[] = {
	{ "host: retries exceeded", host_send_fails, IBV_WC_RETRY_EXC_ERR },
	{ "host: remote error", host_send_fails, IBV_WC_REM_OP_ERR },
	{ "host: flushed", host_send_fails, IBV_WC_WR_FLUSH_ERR },
	{ "host: receive", host_receive_fails, IBV_WC_LOC_PROT_ERR },
	{ "target: retries exceeded", target_send_fails, IBV_WC_RETRY_EXC_ERR },
	{ "target: remote access", target_send_fails, IBV_WC_REM_ACCESS_ERR },
	{ "target: fatal", target_send_fails, IBV_WC_FATAL_ERR },
	{ "target: receive", target_receive_fails, IBV_WC_LOC_LEN_ERR },
	{ "host: disconnected", host_hears, RDMA_CM_EVENT_DISCONNECTED },
	{ "host: its address moved", host_hears, RDMA_CM_EVENT_ADDR_CHANGE },
	{ "target: disconnected", target_hears, RDMA_CM_EVENT_DISCONNECTED },
	{ "target: address moved", target_hears, RDMA_CM_EVENT_ADDR_CHANGE },
};

static uint64_t reconnects(const struct host *h)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(h->ctrl, &info);
	return info.reconnects;
}

static void await_live(const struct host *h, uint64_t more_than, const char *name)
{
	struct weft_err why = { "" };

	for (int i = 0; i < TRIES_MAX; i++) {
		if (reconnects(h) > more_than && weft_ctrl_state(h->ctrl, NULL) == WEFT_LIVE)
			return;
		usleep(1000);
	}
	weft_ctrl_state(h->ctrl, &why);
	fail_msg("%s: no new connection: %s (%s); there are%s", name,
		 weft_state_text(weft_ctrl_state(h->ctrl, NULL)), why.text, fabric_left());
}

/* The I/O that meets the fault is done on the next connection. */
static void reconnects_after_faults(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	char *data = weft_memory_alloc(1 << 20), *back = weft_memory_alloc(1 << 20);

	check_io(&h, data, back, 1 << 20, 1);
	for_each_named(i, faults, name) {
		uint64_t before = reconnects(&h);

		for_each_qp(faults[i].fn, faults[i].arg);
		check_io(&h, data, back, 1 << 20, i);
		await_live(&h, before, faults[i].name);
		check_io(&h, data, back, 4096, i);
	}
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

/* Calls that fail while it connects again, or while it runs. */
static void reconnects_after_failed_calls(void **state)
{
	static const char *const entries[] = { "post_send", "post_recv",    "create_qp",
					       "create_cq", "resolve_addr", "resolve_route",
					       "connect",   "accept",       "migrate_id" };
	struct host h = host_open(WORDS, NS_512);
	char *data = weft_memory_alloc(65536), *back = weft_memory_alloc(65536);

	for_each_row(i, entries) {
		uint64_t before = reconnects(&h);

		fabric_fail(entries[i], 0, 2, ENOMEM);
		weft_ctrl_reset(h.ctrl);
		check_io(&h, data, back, 65536, i);
		await_live(&h, before, entries[i]);
	}
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

/* Nothing gets through, and only the adapter notices: when it has tried often enough. */
static bool time_one_out(void)
{
	struct ibv_qp *qp;

	for (unsigned i = 0; (qp = fabric_qp(i)); i++)
		if (fabric_pending(qp))
			return fabric_time_out(qp);
	return false;
}

static void *notice(void *arg)
{
	for (int i = 0; i < TRIES_MAX; i++, usleep(1000)) {
		bool noticed;

		fabric_freeze();
		noticed = time_one_out();
		fabric_thaw();
		if (noticed)
			break;
	}
	return NULL;
}

static void peer_falls_silent(void **state)
{
	struct host h = host_open(WORDS "&kato=0", NS_512);
	char *data = weft_memory_alloc(4096), *back = weft_memory_alloc(4096);
	uint64_t before = reconnects(&h);
	struct ibv_qp *qp;
	pthread_t thread;

	check_io(&h, data, back, 4096, 1);
	for (unsigned i = 0; (qp = fabric_qp(i)); i++)
		fabric_cut(qp);
	need(!pthread_create(&thread, NULL, notice, NULL));
	check_io(&h, data, back, 4096, 2);
	pthread_join(thread, NULL);
	await_live(&h, before, "silence");
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

static void adapter_goes_and_comes(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	char *data = weft_memory_alloc(4096), *back = weft_memory_alloc(4096);
	uint64_t before = reconnects(&h);

	check_io(&h, data, back, 4096, 1);
	fabric_remove("fake0");
	usleep(20000);
	fabric_restore("fake0");
	check_io(&h, data, back, 4096, 2);
	await_live(&h, before, "adapter");
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

/* --- under fire ------------------------------------------------------------------------------- */

enum { SHOTS = 150 };

static atomic_bool firing;

/* One thing or another, to one QP or another. */
static void shoot(unsigned seed)
{
	struct ibv_qp *qp;

	fabric_freeze();
	qp = fabric_qp(seed / 16 % 5);
	if (qp && seed % 16 < COUNT(faults))
		faults[seed % 16].fn(qp, faults[seed % 16].arg);
	else if (qp)
		fabric_time_out(qp);
	fabric_thaw();
}

static void *fire(void *arg)
{
	unsigned seed = 1;

	for (int i = 0; i < SHOTS; i++, usleep(2000)) {
		seed = seed * 1103515245 + 12345;
		shoot(seed >> 8);
	}
	atomic_store(&firing, false);
	return NULL;
}

static void under_fire(void **state)
{
	struct host h = host_open(WORDS "&io_timeout=60s", NS_512);
	char *data = weft_memory_alloc(1 << 20), *back = weft_memory_alloc(1 << 20);
	pthread_t thread;
	unsigned n = 0;

	atomic_store(&firing, true);
	need(!pthread_create(&thread, NULL, fire, NULL));
	while (atomic_load(&firing) || n % COUNT(sizes)) {
		uint32_t len = sizes[n++ % COUNT(sizes)];

		check_io(&h, data, back, len < 1 << 20 ? len : 1 << 20, n);
	}
	pthread_join(thread, NULL);
	assert_true(reconnects(&h) > 5);
	host_close(&h);
	weft_memory_free(data);
	weft_memory_free(back);
}

/* --- under load ------------------------------------------------------------------------------- */

enum { WORKERS = 2, RANGES = 8, RANGE_BYTES = 256 << 10, PART = 64 << 10 };

/* One command at a time, somewhere in its own range; every block says where it belongs and since
 * when. */
struct io_range {
	struct worker *worker;
	struct weft_cmd cmd;
	struct iovec iov;
	char *memory;
	uint64_t base;
	uint32_t generation[RANGE_BYTES / 4096];
	unsigned seed;
};

struct worker {
	struct weft_queue *queue;
	struct weft_ns *ns;
	struct io_range ranges[RANGES];
	unsigned busy;
	pthread_t thread;
};

static atomic_bool more;

static bool exact; /* the latest generation, and no other */

static void check_stamp(uint64_t offset, uint64_t generation, const uint64_t *found)
{
	if (found[0] == offset && (exact ? found[1] == generation : found[1] <= generation))
		return;
	fprintf(stderr, "%#llx, generation %llu: holds %#llx, generation %llu\n",
		(unsigned long long)offset, (unsigned long long)generation,
		(unsigned long long)found[0], (unsigned long long)found[1]);
	abort();
}

static void stamp(struct io_range *range, bool check)
{
	for (uint64_t at = 0; at < range->cmd.length; at += 4096) {
		uint64_t offset = range->cmd.offset + at;
		uint32_t generation = range->generation[(offset - range->base) / 4096];
		uint64_t *block = (uint64_t *)(range->memory + at);

		if (!check) {
			for (unsigned i = 0; i < 512; i += 2) {
				block[i] = offset;
				block[i + 1] = generation;
			}
			continue;
		}
		for (unsigned i = 0; i < 512 && generation; i += 2)
			check_stamp(offset, generation, block + i);
	}
}

static void range_submit_next(struct io_range *range);

static void lane_done(struct weft_cmd *cmd)
{
	struct io_range *range = cmd->user;

	need(cmd->rc == 0);
	if (cmd->op == WEFT_READ)
		stamp(range, true);
	range_submit_next(range);
}

static void range_submit_next(struct io_range *range)
{
	uint64_t offset, length;

	if (!atomic_load(&more)) {
		range->worker->busy--;
		return;
	}
	range->seed = range->seed * 1103515245 + 12345;
	offset = (range->seed >> 8) % (RANGE_BYTES / 4096) * 4096;
	length = ((range->seed >> 16) % (PART / 4096) + 1) * 4096;
	length = offset + length > RANGE_BYTES ? RANGE_BYTES - offset : length;
	range->cmd = (struct weft_cmd){ .op = range->seed >> 28 & 1 ? WEFT_READ : WEFT_WRITE,
					.ns = range->worker->ns,
					.offset = range->base + offset,
					.length = length,
					.iov = &range->iov,
					.iovcnt = 1,
					.done = lane_done,
					.user = range };
	range->iov = (struct iovec){ range->memory, length };
	if (range->cmd.op == WEFT_WRITE) {
		for (uint64_t at = 0; at < length; at += 4096)
			range->generation[(offset + at) / 4096]++;
		stamp(range, false);
	}
	need(weft_submit(range->worker->queue, &range->cmd) == 0);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->busy = RANGES;
	for (unsigned i = 0; i < RANGES; i++)
		range_submit_next(&worker->ranges[i]);
	while (worker->busy)
		weft_queue_poll(worker->queue, 100);
	return NULL;
}

/* Half of the ranges in memory that the adapter is told of, half not. */
static void worker_start(struct worker *worker, struct host *h, unsigned index)
{
	*worker = (struct worker){ .queue = open_queue(h->ctrl), .ns = h->ns };
	for (unsigned i = 0; i < RANGES; i++) {
		struct io_range *range = &worker->ranges[i];

		range->worker = worker;
		range->memory = i % 2 ? malloc(PART) : weft_memory_alloc(PART);
		range->base = (uint64_t)(index * RANGES + i) * RANGE_BYTES;
		range->seed = index * 100 + i;
	}
	need(!pthread_create(&worker->thread, NULL, work, worker));
}

static void worker_end(struct worker *worker)
{
	pthread_join(worker->thread, NULL);
	weft_queue_close(worker->queue);
	for (unsigned i = 0; i < RANGES; i++)
		if (i % 2)
			free(worker->ranges[i].memory);
		else
			weft_memory_free(worker->ranges[i].memory);
}

static void remove_and_restore(struct host *h, unsigned i)
{
	uint64_t before = reconnects(h);

	fabric_remove("fake0");
	usleep(i * 5000);
	fabric_restore("fake0");
	await_live(h, before, "adapter");
}

/* It meets whom it meets: some queue may just be connecting. */
static void break_something(struct host *h, unsigned i)
{
	for_each_qp(faults[i % COUNT(faults)].fn, faults[i % COUNT(faults)].arg);
}

static void under_load(uint32_t nsid, unsigned rounds, void (*trouble)(struct host *h, unsigned i))
{
	struct host h = { .ctrl = connect_with(WORDS) };
	static struct worker workers[WORKERS];

	h.ns = open_ns(h.ctrl, nsid);
	atomic_store(&more, true);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_start(&workers[i], &h, i);
	for (unsigned i = 0; i < rounds; i++) {
		usleep(20000);
		trouble(&h, i);
	}
	atomic_store(&more, false);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_end(&workers[i]);
	assert_true(reconnects(&h) > 0);
	weft_ns_close(h.ns);
	weft_disconnect(h.ctrl);
}

static void faults_under_load(void **state)
{
	exact = true;
	under_load(NS_4K, 2 * COUNT(faults), break_something);
}

static void adapter_goes_under_load(void **state)
{
	exact = true;
	under_load(NS_4K, 3, remove_and_restore);
}

/* Storage that takes its time: what a lost connection has begun must not end after it was sent
 * again and overwritten. */
static void on_a_file(void **state)
{
	char spec[80], name[] = "/tmp/weft-pair-XXXXXX";
	int fd = mkstemp(name);

	need(fd >= 0);
	snprintf(spec, sizeof(spec), "file:%s,size=16M", name);
	target_ns_add(9, spec, 4096, NULL);
	exact = true;
	under_load(9, 2 * COUNT(faults), break_something);
	target_ns_remove(9);
	close(fd);
	unlink(name);
}

/* --- tuning ----------------------------------------------------------------------------------- */

static void tuning(void **state)
{
	struct host h = host_open(WORDS "&tos=104&retry=3&rnr_retry=5&ack_timeout=17&inline=64",
				  NS_512);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	unsigned hosts = 0;

	for (unsigned i = 0; (qp = fabric_qp(i)); i++) {
		assert_int_equal(fabric_verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
		if (attr.qp_state == IBV_QPS_ERR) /* of the case before */
			continue;
		if (is_target(qp)) {
			assert_int_equal(attr.rnr_retry, 5); /* for who sends to the host */
			continue;
		}
		hosts++;
		assert_int_equal(attr.ah_attr.grh.traffic_class, 104);
		assert_int_equal(attr.retry_cnt, 3);
		assert_int_equal(attr.rnr_retry, 7);
		assert_int_equal(attr.timeout, 17);
	}
	assert_int_equal(hosts, 2);
	host_close(&h);
}

static void path(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	struct weft_path found;

	weft_ctrl_path(h.ctrl, &found);
	assert_string_equal(found.transport, "rdma");
	assert_string_equal(found.device, "fake0");
	assert_string_equal(found.kind, "RoCE v2");
	assert_string_equal(found.gid, "::ffff:127.0.0.1");
	assert_int_equal(found.port, 1);
	assert_int_equal(found.mtu, 1024);
	host_close(&h);
}

static void iwarp_path(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	struct weft_path found;

	weft_ctrl_path(h.ctrl, &found);
	assert_string_equal(found.device, "iwarp0");
	assert_string_equal(found.kind, "iWARP");
	assert_int_equal(found.mtu, 0);
	host_close(&h);
}

/* --- both kinds of adapter -------------------------------------------------------------------- */

static int start_roce(void **state)
{
	fabric_loopback("fake0");
	return start_target(state);
}

/* From here on everything is on the other one. */
static void move_to_iwarp(void **state)
{
	end_target(state);
	fabric_loopback("iwarp0");
	start_target(state);
}

/* With a name, or a pattern, only the cases of that name. */
/* It cannot be handed to another process: who stands still ends it, and the host comes again. */
static void frozen_target(void **state)
{
	struct host h = host_open(WORDS, NS_512);
	char *data = malloc(MOST), *back = malloc(MOST);

	for (unsigned i = 0; i < 3; i++) {
		check_io(&h, data, back, 65536, i);
		assert_int_equal(target_freeze(60000), 0);
		target_thaw();
	}
	check_io(&h, data, back, 65536, 3);
	host_close(&h);
	free(data);
	free(back);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(anybodys_memory),
		cmocka_unit_test(our_memory),
		cmocka_unit_test(declared_memory),
		cmocka_unit_test(dmabuf),
		cmocka_unit_test(reconnects_after_faults),
		cmocka_unit_test(reconnects_after_failed_calls),
		cmocka_unit_test(under_fire),
		cmocka_unit_test(peer_falls_silent),
		cmocka_unit_test(adapter_goes_and_comes),
		cmocka_unit_test(faults_under_load),
		cmocka_unit_test(adapter_goes_under_load),
		cmocka_unit_test(on_a_file),
		cmocka_unit_test(tuning),
		cmocka_unit_test(path),
		cmocka_unit_test(frozen_target),
		cmocka_unit_test(move_to_iwarp),
		{ "anybodys_memory_iwarp", anybodys_memory, NULL, NULL, NULL },
		{ "our_memory_iwarp", our_memory, NULL, NULL, NULL },
		{ "declared_memory_iwarp", declared_memory, NULL, NULL, NULL },
		{ "reconnects_after_faults_iwarp", reconnects_after_faults, NULL, NULL, NULL },
		{ "under_fire_iwarp", under_fire, NULL, NULL, NULL },
		{ "faults_under_load_iwarp", faults_under_load, NULL, NULL, NULL },
		{ "peer_falls_silent_iwarp", peer_falls_silent, NULL, NULL, NULL },
		cmocka_unit_test(iwarp_path),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, start_roce, end_target);
}
