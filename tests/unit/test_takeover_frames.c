/* test_takeover_frames.c - what one target tells the next: there and back, cut anywhere, wrong
 * anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/takeover/frames.h"
#include "daemon/takeover/frame_schema.h"
#include "daemon/internal.h"
#include "running.h"
#include "transport/tcp/state.h"

#define LIMIT_MS 2000

/* --- hexadecimal ------------------------------------------------------------------------------ */

static void hex_there_and_back(void **state)
{
	unsigned char bytes[256], back[256];
	char *text;

	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		text = weft_hex_encode(bytes, len);
		assert_int_equal(strlen(text), 2 * len);
		assert_int_equal(weft_hex_decode(text, back, len), len);
		assert_memory_equal(bytes, back, len);
		free(text);
	}
}

static void hex_refused(void **state)
{
	static const char *const texts[] = { "0", "000", "0g", "0A", " 0", "00000000" };
	char room[3];

	for_each_row(i, texts)
		assert_int_equal(weft_hex_decode(texts[i], room, sizeof(room)), -EINVAL);
}

/* --- samples ---------------------------------------------------------------------------------- */

static struct weft_items items_of(const void *from, unsigned count, size_t size)
{
	struct weft_items items = { malloc(count * size + 1), count };

	memcpy(items.at, from, count * size);
	return items;
}

#define ITEMS(...)                                                              \
	items_of((__VA_ARGS__), sizeof((__VA_ARGS__)) / sizeof(*(__VA_ARGS__)), \
		 sizeof(*(__VA_ARGS__)))

static struct weft_running_config sample_running(int fd)
{
	struct weft_running_ns namespaces[] = {
		{ .nsid = 1,
		  .block = 4096,
		  .ana_group = 1024,
		  .size = 1ull << 40,
		  .has_fd = true,
		  .fd = fd },
		{ .nsid = 1024, .block = 512, .size = 512, .sync_failed = true, .fd = -1 },
	};
	struct weft_running_subsys subsystems[] = {
		{ .nqn = "nqn.a", .serial = "1", .model = "m" },
		{ .nqn = "nqn.b",
		  .serial = "2",
		  .model = "\"\\",
		  .state = "file:/srv/a b",
		  .node = 64,
		  .nodes = 64,
		  .access = WEFT_ALLOWED_LISTED },
	};
	char hosts[][WEFT_NQN_MAX + 1] = { "nqn.h", "nqn.i" };

	for (size_t i = 0; i < COUNT(namespaces); i++) {
		strcpy(namespaces[i].uuid, "11111111-2222-3333-4444-555555555555");
		strcpy(namespaces[i].backend, "file:/tmp/a b,size=1G");
	}
	subsystems[0].namespaces = ITEMS(namespaces);
	subsystems[1].namespaces = items_of(namespaces, 0, sizeof(namespaces[0]));
	subsystems[1].hosts = ITEMS(hosts);
	return (struct weft_running_config){ .format = WEFT_TAKEOVER_FORMAT,
					     .depth = 65535,
					     .queues = 1,
					     .subsystems = ITEMS(subsystems) };
}

static struct weft_ctrl_state sample_ctrl(void)
{
	struct weft_ctrl_state ctrl = {
		.nqn = "nqn.a",
		.hostnqn = "host \xff\x80",
		.hostid = "11111111-2222-3333-4444-555555555555",
		.cntlid = 7,
		.portid = 65535,
		.ciu = 255,
		.cirn_low = UINT32_MAX,
		.cirn_high = UINT32_MAX,
		.cc = 0x460001,
		.csts = 1,
		.io_queues = 4,
		.kato_ms = UINT32_MAX,
		.kato_left_ms = 1,
		.traffic = true,
		.timestamp_ms = 1ull << 47,
		.timestamp_age_ms = 3,
		.timestamp_by_host = true,
		.nerrors = 1000,
		.resv_count = 1ull << 60,
	};

	ctrl.features = ITEMS((struct weft_feature_state[]){ { 0, 1 }, { 255, UINT32_MAX } });
	ctrl.ana = ITEMS((struct weft_takeover_entry[]){ { 1, WEFT_ANA_CHANGE, 0 } });
	ctrl.ccrs = ITEMS((struct weft_takeover_entry[]){ { 3, 0x101, 0 } });
	ctrl.pending = ITEMS((uint32_t[]){ 4, 0x70 });
	ctrl.masked = items_of("", 0, sizeof(uint32_t));
	ctrl.changed = ITEMS((uint32_t[]){ 1, 2, 1024 });
	ctrl.errors = items_of("\0\1\2\3", 4, 1);
	ctrl.behavior = items_of("", 0, 1);
	ctrl.resv_pages = items_of("\1\2", 2, 1);
	ctrl.resv_masks = items_of("\0\xff", 2, 1);
	return ctrl;
}

/* Of a cluster, or one without a descriptor. */
static struct weft_store_state sample_store(int fd, bool alone)
{
	struct weft_store_state store = {
		.revision = 1ull << 60,
		.session = 3,
		.acked = 2,
		.incarnation = 1,
		.nodes = 64,
		.has_fd = !alone,
		.fd = fd,
		.records = items_of("record", alone ? 0 : 6, 1),
	};

	store.members = ITEMS((struct weft_store_member_state[]){ { 64, 1ull << 60, 2 } });
	return store;
}

static struct weft_takeover_state sample_state(int fd)
{
	struct weft_ctrl_state ctrls[] = { sample_ctrl() };
	struct weft_queue_state queues[] = {
		{ .ctrl = 1,
		  .qpair = { .sqhd = 5,
			     .sqsize = 32,
			     .sq_flow = true,
			     .bytes = strdup("abc"),
			     .nbytes = 3 },
		  .totals = { 1, 2, 3, 4 } },
		{ .qpair = { .bytes = strdup("") } },
		{ .ctrl = 1, .qpair = { .sqid = 9, .bytes = strdup("defg"), .nbytes = 4 } },
	};
	const struct tcp_conn_state conns[] = {
		{ .fd = fd, .ready = true, .hdgst = true, .hpda = 31, .maxr2t = 4 },
		{ .fd = fd },
		{ .fd = fd },
	};
	struct weft_subsys_state subsystems[] = {
		{ .nqn = "nqn.a", .cntlid = 7, .totals = { 9, .media_errors = 3 }, .ana_count = 5 },
		{ .nqn = "nqn.b", .draining = true },
	};
	struct weft_takeover_state state = { .format = WEFT_TAKEOVER_FORMAT,
					     .since_ns = 123456789012345,
					     .still_ns = 123456789012346,
					     .control = fd };

	for (size_t i = 0; i < COUNT(queues); i++)
		*tcp_conn_state(&queues[i].qpair) = conns[i];
	state.target.genctr = 99;
	subsystems[0].ana_rules = ITEMS(
		(struct weft_ana_rule[]){ { 1024, WEFT_ANA_INACCESSIBLE, 3, "nqn.h" } });
	subsystems[0].ns_errors = ITEMS(
		(struct weft_ns_errors_state[]){ { 1, 2, 3 }, { 1024, 1ull << 60, 0 } });
	subsystems[0].ana_changed = ITEMS(
		(struct weft_takeover_entry[]){ { 1024, 0, 1ull << 60 } });
	for (size_t i = 0; i < COUNT(subsystems); i++)
		subsystems[i].store = sample_store(fd, i);
	state.target.subsystems = ITEMS(subsystems);
	state.target.listeners = ITEMS(
		(struct weft_listener_state[]){ { .uri = "nvme+tcp://[::1]:1", .fd = fd } });
	state.target.ctrls = ITEMS(ctrls);
	state.target.queues = ITEMS(queues);
	return state;
}

/* --- there and back --------------------------------------------------------------------------- */

static void open_pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

/* Sends @frame, frees it, and receives it. */
static void pass(struct weft_frame *frame, const char *step, struct weft_frame *got)
{
	struct weft_err err = { "" };
	int ends[2];

	open_pair(ends);
	assert_int_equal(weft_channel_send(ends[0], frame), 0);
	weft_frame_free_borrowed(frame);
	assert_int_equal(weft_channel_recv(ends[1], step, LIMIT_MS, got, &err), 0);
	close(ends[0]);
	close(ends[1]);
}

static void assert_same_file(int a, int b)
{
	struct stat st_a, st_b;

	assert_int_equal(fstat(a, &st_a), 0);
	assert_int_equal(fstat(b, &st_b), 0);
	assert_int_equal(st_a.st_ino, st_b.st_ino);
	assert_true(fcntl(b, F_GETFD) & FD_CLOEXEC);
}

static void assert_equal_docs(struct weft_frame *a, struct weft_frame *b)
{
	assert_true(json_equal(a->doc, b->doc));
	assert_int_equal(a->bytes.count, b->bytes.count);
	assert_memory_equal(a->bytes.at, b->bytes.at, a->bytes.count);
	assert_int_equal(a->fds.count, b->fds.count);
}

static void running_there_and_back(void **state)
{
	int fd = open("/dev/null", O_RDONLY);
	struct weft_running_config running = sample_running(fd), got;
	struct weft_frame frame, passed, again, sent;
	struct weft_running_ns *ns;

	assert_int_equal(weft_running_config_encode(&running, &frame), 0);
	assert_int_equal(weft_running_config_encode(&running, &sent), 0);
	pass(&frame, "prepare", &passed);
	assert_int_equal(weft_running_config_decode(&passed, &got, NULL), 0);
	weft_frame_free(&passed);
	assert_int_equal(weft_running_config_encode(&got, &again), 0);
	assert_equal_docs(&sent, &again);
	ns = ((struct weft_running_subsys *)got.subsystems.at)[0].namespaces.at;
	assert_same_file(fd, ns[0].fd);
	assert_int_equal(ns[1].fd, -1);
	close(ns[0].fd);
	weft_frame_free_borrowed(&sent);
	weft_frame_free_borrowed(&again);
	weft_running_config_free(&running);
	weft_running_config_free(&got);
	close(fd);
}

static void close_state(struct weft_takeover_state *state)
{
	struct weft_subsys_state *subsystems = state->target.subsystems.at;
	struct weft_listener_state *listeners = state->target.listeners.at;
	struct weft_queue_state *queues = state->target.queues.at;

	close(state->control);
	close(subsystems[0].store.fd);
	for (unsigned i = 0; i < state->target.listeners.count; i++)
		close(listeners[i].fd);
	for (unsigned i = 0; i < state->target.queues.count; i++)
		close(tcp_conn_state(&queues[i].qpair)->fd);
	weft_target_state_free(&state->target);
}

static void state_there_and_back(void **unused)
{
	int fd = open("/dev/null", O_RDONLY);
	struct weft_takeover_state state = sample_state(fd), got;
	struct weft_frame frame, passed, again, sent;
	struct weft_subsys_state *subsystems;
	struct weft_queue_state *queues;

	assert_int_equal(weft_takeover_state_encode(&state, &frame), 0);
	assert_int_equal(weft_takeover_state_encode(&state, &sent), 0);
	pass(&frame, "state", &passed);
	assert_int_equal(weft_takeover_state_decode(&passed, &got, NULL), 0);
	weft_frame_free(&passed);
	assert_int_equal(weft_takeover_state_encode(&got, &again), 0);
	assert_equal_docs(&sent, &again);
	subsystems = got.target.subsystems.at;
	assert_memory_equal(subsystems[0].store.records.at, "record", 6);
	assert_same_file(fd, subsystems[0].store.fd);
	assert_int_equal(subsystems[1].store.fd, -1);
	queues = got.target.queues.at;
	assert_memory_equal(queues[0].qpair.bytes, "abc", 3);
	assert_memory_equal(queues[2].qpair.bytes, "defg", 4);
	assert_same_file(fd, tcp_conn_state(&queues[2].qpair)->fd);
	weft_frame_free_borrowed(&sent);
	weft_frame_free_borrowed(&again);
	weft_target_state_free(&state.target);
	close_state(&got);
	close(fd);
}

/* More than one message can carry. */
static void many_descriptors(void **state)
{
	struct weft_frame frame = { .doc = json_pack("{s:s}", "step", "x") }, got;
	int fds[700], fd = open("/dev/null", O_RDONLY);

	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = fd;
	frame.fds = ITEMS(fds);
	pass(&frame, "x", &got);
	assert_int_equal(got.fds.count, COUNT(fds));
	assert_same_file(fd, ((int *)got.fds.at)[COUNT(fds) - 1]);
	weft_frame_free(&got);
	close(fd);
}

/* --- wrong ------------------------------------------------------------------------------------ */

static struct weft_frame state_frame(void)
{
	struct weft_takeover_state state = sample_state(0);
	struct weft_frame frame;

	assert_int_equal(weft_takeover_state_encode(&state, &frame), 0);
	weft_target_state_free(&state.target);
	return frame;
}

/* Descriptors in it are borrowed: what is read keeps none of its own. */
static int try_read(struct weft_frame *frame)
{
	struct weft_err err = { "" };
	struct weft_takeover_state got;
	int rc = weft_takeover_state_decode(frame, &got, &err);

	if (rc == 0)
		weft_target_state_free(&got.target);
	else
		assert_string_not_equal(err.text, "");
	return rc;
}

static int try_doc(json_t *doc)
{
	struct weft_frame frame = state_frame();
	int rc;

	json_decref(frame.doc);
	frame.doc = json_deep_copy(doc);
	rc = try_read(&frame);
	weft_frame_free_borrowed(&frame);
	return rc;
}

static void other_formats_refused(void **state)
{
	struct weft_frame frame = state_frame();

	assert_int_equal(try_doc(frame.doc), 0);
	for (int format = -1; format < 4; format++) {
		json_object_set_new(frame.doc, "format", json_integer(format));
		assert_int_equal(try_doc(frame.doc), format >= 1 && format <= WEFT_TAKEOVER_FORMAT ?
							     0 :
							     -EPROTONOSUPPORT);
	}
	json_object_set_new(frame.doc, "format", json_string("1"));
	assert_int_equal(try_doc(frame.doc), -EPROTONOSUPPORT);
	weft_frame_free_borrowed(&frame);
}

/* Versions that write the same format do not know it, or leave it out where it says nothing. */
static bool may_be_missing(const char *key)
{
	return !strcmp(key, "media_errors") || !strcmp(key, "namespace_errors");
}

/* Every key of @at, at any depth below @root: without it, and with values of another kind. */
static void spoil_all(json_t *root, json_t *at, unsigned *spoiled)
{
	json_t *wrong[] = { json_null(), json_real(1.5), json_pack("[n]"),
			    json_pack("{s:i}", "novelty", 1) };
	json_auto_t *keys = json_copy(at); /* @at changes underway */
	const char *key;
	json_t *value;

	json_object_foreach(keys, key, value) {
		if (!strcmp(key, "step"))
			continue;
		json_object_del(at, key);
		assert_true(may_be_missing(key) ? !try_doc(root) : try_doc(root) < 0);
		for (size_t i = 0; i < COUNT(wrong); i++) {
			json_object_set(at, key, wrong[i]);
			assert_true(try_doc(root) < 0);
		}
		json_object_set(at, key, value);
		spoil_all(root, json_is_array(value) ? json_array_get(value, 0) : value, spoiled);
		(*spoiled)++;
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		json_decref(wrong[i]);
}

static void wrong_documents_refused(void **state)
{
	struct weft_frame frame = state_frame();
	unsigned spoiled = 0;

	spoil_all(frame.doc, frame.doc, &spoiled);
	assert_true(spoiled > 50);
	assert_int_equal(try_doc(frame.doc), 0);
	weft_frame_free_borrowed(&frame);
}

/* As many bytes and descriptors as the document speaks of. */
static void wrong_counts_refused(void **state)
{
	struct weft_frame frame;

	for (int more = -1; more <= 1; more += 2) {
		frame = state_frame();
		frame.bytes.count += (unsigned)more;
		assert_int_equal(try_read(&frame), -EPROTO);
		weft_frame_free_borrowed(&frame);
		frame = state_frame();
		frame.fds.at = realloc(frame.fds.at, (frame.fds.count + 1) * sizeof(int));
		frame.fds.count += (unsigned)more;
		assert_int_equal(try_read(&frame), -EPROTO);
		weft_frame_free_borrowed(&frame);
	}
}

/* The bytes of a frame without descriptors. */
static size_t raw_frame(char *raw, size_t room)
{
	struct weft_frame frame = state_frame();
	int ends[2];
	ssize_t n;

	open_pair(ends);
	frame.fds.count = 0;
	assert_int_equal(weft_channel_send(ends[0], &frame), 0);
	n = recv(ends[1], raw, room, 0);
	assert_in_range(n, 17, room - 1);
	weft_frame_free_borrowed(&frame);
	close(ends[0]);
	close(ends[1]);
	return (size_t)n;
}

static int receive_raw(const char *raw, size_t len)
{
	struct weft_err err = { "" };
	struct weft_frame got;
	int ends[2], rc;

	open_pair(ends);
	assert_int_equal(send(ends[0], raw, len, 0), len);
	close(ends[0]);
	rc = weft_channel_recv(ends[1], "state", LIMIT_MS, &got, &err);
	close(ends[1]);
	if (rc == 0)
		weft_frame_free(&got);
	return rc;
}

static void cut_frames_refused(void **state)
{
	char raw[16384];
	size_t len = raw_frame(raw, sizeof(raw));

	assert_int_equal(receive_raw(raw, len), 0);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(receive_raw(raw, cut), -ECONNRESET);
}

static void spoilt_frames_refused(void **state)
{
	static const struct {
		size_t at;
		unsigned char value;
	} cases[] = {
		{ 0, 0 },     /* not ours */
		{ 7, 0xff },  /* a document of 4 GiB */
		{ 11, 0xff }, /* so many bytes */
		{ 15, 0xff }, /* so many descriptors */
		{ 16, '[' },  /* no document */
	};
	char raw[16384];
	size_t len;

	for_each_row(i, cases) {
		len = raw_frame(raw, sizeof(raw));
		raw[cases[i].at] = (char)cases[i].value;
		assert_int_equal(receive_raw(raw, len), -EPROTO);
	}
}

static void other_steps_refused(void **state)
{
	struct weft_err err = { "" };
	struct weft_frame got;
	int ends[2];

	open_pair(ends);
	assert_int_equal(weft_channel_send_step(ends[0], "ready"), 0);
	assert_int_equal(weft_channel_recv(ends[1], "go", LIMIT_MS, &got, &err), -EPROTO);
	weft_channel_send_failed(ends[0], "because");
	err.text[0] = '\0';
	assert_int_equal(weft_channel_recv(ends[1], "go", LIMIT_MS, &got, &err), -ECANCELED);
	assert_string_equal(err.text, "because");
	assert_int_equal(weft_channel_recv(ends[1], "go", 1, &got, &err), -ETIMEDOUT);
	close(ends[0]);
	close(ends[1]);
}

/* Who hands over must know: what it could say was heard, what was not heard it could not say. */
static void late_words(void **state)
{
	struct weft_err err = { "" };
	struct weft_frame got;
	int ends[2];

	open_pair(ends);
	assert_int_equal(weft_channel_send_step(ends[0], "go"), 0);
	assert_int_equal(weft_channel_recv(ends[1], "go", 0, &got, &err), 0);
	weft_frame_free(&got);
	assert_int_equal(weft_channel_recv(ends[1], "go", 0, &got, &err), -ETIMEDOUT);
	assert_int_equal(weft_channel_send_step(ends[0], "go"), -ECONNRESET);
	close(ends[0]);
	close(ends[1]);
}

/* --- who may hand over ------------------------------------------------------------------------ */

static struct {
	bool made_up;
	uid_t ours, theirs;
} users;

uid_t geteuid(void)
{
	return users.made_up ? users.ours : getuid();
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc = (int)syscall(SYS_getsockopt, fd, level, name, value, len);

	if (!rc && users.made_up && name == SO_PEERCRED)
		((struct ucred *)value)->uid = users.theirs;
	return rc;
}

static int meet(int *rc_of_connect)
{
	char name[WEFT_CHANNEL_NAME_MAX];
	_cleanup_(weft_closep) int listener = weft_channel_listen(name);
	_cleanup_(weft_closep) int here = -1, there = -1;
	struct weft_err err = { "" };
	pid_t pid = 0;

	assert_true(listener >= 0);
	there = weft_channel_connect(name, &pid, &err);
	*rc_of_connect = there < 0 ? there : 0;
	here = weft_channel_accept(listener, &pid, &err);
	return here < 0 ? here : 0;
}

static void only_this_user_and_root(void **state)
{
	static const struct {
		uid_t ours, theirs;
		int rc;
	} cases[] = {
		{ 0, 0, 0 },         { 1000, 1000, 0 },      { 1000, 0, 0 },
		{ 0, 1000, -EPERM }, { 1000, 1001, -EPERM },
	};
	int rc;

	for_each_row(i, cases) {
		users.made_up = true;
		users.ours = cases[i].ours;
		users.theirs = cases[i].theirs;
		assert_int_equal(meet(&rc), cases[i].rc);
		assert_int_equal(rc, cases[i].rc);
		users.made_up = false;
	}
}

/* --- storage that goes on --------------------------------------------------------------------- */

static void storage_goes_on(void **state)
{
	static const struct {
		uint64_t size; /* that hosts know */
		bool sync_failed;
		int rc;
	} cases[] = {
		{ 1 << 20, false, 0 },
		{ 1 << 20, true, 0 },
		{ (1 << 20) - 4096, false, -EINVAL },
		{ (1 << 20) + 4096, false, -EINVAL },
	};
	struct weft_err err;

	for_each_row(i, cases) {
		struct weft_ns_config ns = { .adopted = true,
					     .fd = -1,
					     .size = cases[i].size,
					     .sync_failed = cases[i].sync_failed };

		err.text[0] = '\0';
		assert_int_equal(weft_spec_parse("null:1M,delay=1ms", &ns.spec, &err), 0);
		assert_int_equal(weft_config_ns_open(&ns, false, &err), cases[i].rc);
		if (!cases[i].rc)
			assert_int_equal(atomic_load(&weft_backend_storage(ns.be)->sync_failed),
					 cases[i].sync_failed);
		weft_ns_config_free(&ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_there_and_back),      cmocka_unit_test(hex_refused),
		cmocka_unit_test(running_there_and_back),  cmocka_unit_test(state_there_and_back),
		cmocka_unit_test(many_descriptors),        cmocka_unit_test(other_formats_refused),
		cmocka_unit_test(wrong_documents_refused), cmocka_unit_test(wrong_counts_refused),
		cmocka_unit_test(cut_frames_refused),      cmocka_unit_test(spoilt_frames_refused),
		cmocka_unit_test(other_steps_refused),     cmocka_unit_test(late_words),
		cmocka_unit_test(only_this_user_and_root), cmocka_unit_test(storage_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
