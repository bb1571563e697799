/* fuzz_host.c - what the host makes of a controller's answers, and of a user's address.
 *
 *   input: a byte that says which of them, then
 *     an address            ─▶ its parts, what a connection asks for
 *     discovery logs        ─▶ entries, referrals
 *     an LBA status         ─▶ what is allocated
 *     namespaces            ─▶ identity, geometry, what may be done with them
 *     a controller's set-up ─▶ its traits, then events and looks at its namespaces
 *
 * No answer makes the host do more than a bounded amount of work, believe in something that its
 * user could trip over, or write where it should not. */
#include <errno.h>
#include <string.h>

#include "fake_ctrl.h"
#include "host/queue/op_desc.h"
#include "must.h"
#include "peer/input.h"

enum { NAMESPACES = 3, ANSWERS_MAX = 400 };

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- an address ------------------------------------------------------------------------------- */

static void check_config(const struct host_config *c)
{
	const struct weft_options *o = &c->options;

	must(!weft_subnqn_check(c->subnqn, NULL) && !weft_nqn_check(c->hostnqn, NULL));
	must(o->queues && o->queues <= HOST_QUEUES_MAX && o->depth && o->depth <= HOST_DEPTH_MAX);
	must(o->connect_ms && o->admin_ms && o->io_ms && o->abort_ms);
	must(o->reconnect_ms && o->reconnect_max_ms);
	must(c->nsid < NVME_NSID_BROADCAST);
}

static void one_address(void)
{
	char text[WEFT_URI_MAX + 8];
	struct weft_uri_parts parts;
	struct host_config config;
	struct weft_err err = { "" };
	int rc;

	input_bytes(text, sizeof(text), sizeof(text) - 1);
	rc = weft_uri_split(text, &parts, &err);
	must(rc == 0 ? !err.text[0] && parts.host[0] : rc < 0 && err.text[0]);
	if (rc < 0)
		return;
	rc = host_config_parse(&parts, "", NULL, &config, &err);
	must(rc == 0 ? !err.text[0] : rc == -EINVAL && err.text[0]);
	if (rc == 0)
		check_config(&config);
}

/* --- discovery -------------------------------------------------------------------------------- */

static void check_text(const char *text, size_t size)
{
	must(strnlen(text, size) < size);
	for (; *text; text++)
		must((unsigned char)*text >= 0x20 && *text != 0x7f);
}

/* An address to connect to is the entry's, and nothing else. */
static void check_uri(const struct weft_discovered *d)
{
	struct sockaddr_storage addr;
	struct weft_uri_parts parts;

	if (!d->uri[0])
		return;
	must(!weft_uri_split(d->uri, &parts, NULL));
	must(!strcmp(d->transport, weft_uri_transport(parts.trtype)));
	must(!parts.query[0]);
	must(!strcasecmp(parts.host, d->address));
	must(!weft_addr_parse(parts.host, parts.port, &addr) && !weft_addr_is_wildcard(&addr));
	must(parts.port == strtoul(d->service, NULL, 10));
	must(!parts.nqn[0] || !strcmp(parts.nqn, d->subnqn));
}

static void check_log(const struct weft_discovery *log)
{
	for (unsigned i = 0; i < log->count; i++) {
		const struct weft_discovered *d = &log->entries[i];

		check_text(d->transport, sizeof(d->transport));
		check_text(d->address, sizeof(d->address));
		check_text(d->service, sizeof(d->service));
		check_text(d->subnqn, sizeof(d->subnqn));
		check_text(d->from, sizeof(d->from));
		check_text(d->uri, sizeof(d->uri));
		check_uri(d);
	}
}

static void one_discovery(bool walk)
{
	struct weft_discovery log;
	struct weft_err err = { "" };
	int rc;

	fake_ctrl->pub.traits.discovery = fake_ctrl_path->pub.traits.discovery = true;
	rc = walk ? weft_discover("nvme+tcp://192.0.2.1:8009", NULL, &log, &err) :
		    weft_discovery_read(fake_ctrl, &log, &err);
	must(rc == 0 ? !err.text[0] : rc < 0 && err.text[0]);
	must(rc == 0 || (!log.count && !log.entries));
	must(log.unreachable <= fake_ctrl_connects);
	must(!log.unreachable || log.why.text[0]);
	must(!log.skipped || log.skipped_why.text[0]);
	must(log.count <= 16384 && log.left_ms <= 60000);
	must(!fake_ctrl_open);
	check_log(&log);
	weft_discovery_free(&log);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void check_ns(struct weft_ns *ns)
{
	struct weft_ns_info info;

	weft_ns_info(ns, &info);
	must(info.block_size >= 512 && info.block_size <= 65536);
	must(!(info.block_size & (info.block_size - 1)));
	must(info.size && info.size % info.block_size == 0 && info.size <= INT64_MAX);
	must(!info.uuid[0] || strlen(info.uuid) == 36);
}

static bool is_range(enum weft_op_code op)
{
	return op != WEFT_FLUSH && op != WEFT_RAW;
}

/* A command that is accepted lies within the namespace, and is cut into whole blocks. */
static void check_command(const struct host_traits *traits, struct weft_ns *ns)
{
	uint8_t how = u8();
	struct weft_cmd cmd = { .op = how % (WEFT_RAW + 2), .flags = how >> 6, .ns = ns };
	struct iovec iov = { NULL, SIZE_MAX / 2 };
	uint64_t block = UINT64_C(1) << ns->block_shift, piece;

	cmd.offset = how & 16 ? u64() : u8() * block;
	cmd.length = how & 32 ? u64() : u16() * block;
	cmd.copy_from = u8() * block;
	cmd.iov = &iov;
	cmd.iovcnt = 1;
	if (host_cmd_check(traits, &cmd) < 0 || !is_range(cmd.op))
		return;
	must(cmd.length && (cmd.offset | cmd.length) % block == 0);
	must(cmd.offset < ns->size && cmd.length <= ns->size - cmd.offset);
	if (cmd.op == WEFT_COMPARE_AND_WRITE) {
		must(cmd.length <= traits->transfer_max && traits->depth >= 2);
		return;
	}
	piece = host_cmd_piece_max(traits, &cmd);
	must(piece && piece % block == 0);
	must(piece / block <= (cmd.op == WEFT_TRIM ? UINT32_MAX : 65536));
}

/* Whoever waits for the control reactor: for a look at a namespace. A path that breaks of it does
 * not come back. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	fake_ctrl_turn(0);
	if (!fake_ctrl_answer())
		fake_ctrl->pub.state = WEFT_DEAD;
	return pthread_mutex_lock(lock);
}

static void live(bool yes)
{
	fake_ctrl_path->state = yes ? HOST_PATH_LIVE : HOST_PATH_CONNECTING;
	fake_ctrl_path->pub.state = host_path_public_state(fake_ctrl_path);
	fake_ctrl->pub.state = fake_ctrl_path->pub.state;
	fake_ctrl_broken = false;
}

static void open_namespaces(struct weft_ns *ns[NAMESPACES])
{
	for (unsigned i = 0; i < NAMESPACES; i++) {
		struct weft_err err = { "" };
		int rc;

		live(true);
		rc = weft_ns_open(fake_ctrl, u8() % 4 + 1, &ns[i], &err);
		must(rc == 0 ? !err.text[0] : rc < 0 && err.text[0]);
		if (rc < 0)
			ns[i] = NULL;
		else
			check_ns(ns[i]);
	}
}

static void close_namespaces(struct weft_ns *ns[NAMESPACES])
{
	for (unsigned i = 0; i < NAMESPACES; i++)
		weft_ns_close(ns[i]);
	must(weft_list_empty(&fake_ctrl->ns_records));
}

static void list_namespaces(void)
{
	uint32_t nsids[8] = { 0 };
	struct weft_err err = { "" };
	int n = weft_ns_list(fake_ctrl, nsids, 8, &err);

	must(n >= 0 ? !err.text[0] : err.text[0] != '\0');
	for (int i = 0; i < n && i < 8; i++)
		must(nsids[i] && (!i || nsids[i] > nsids[i - 1]));
}

static void some_namespaces(void)
{
	const struct host_traits traits = {
		.transfer_max = 4096u << u8() % 12,
		.zero_max = UINT32_MAX,
		.verify_max = u8() % 2 ? UINT32_MAX : 8192,
		.depth = 8,
		.oncs = UINT16_MAX,
		.fuses = 1,
	};
	struct weft_ns *ns[NAMESPACES];

	fake_ctrl->pub.traits = fake_ctrl_path->assoc.traits = traits;
	open_namespaces(ns);
	for (unsigned i = 0; i < NAMESPACES; i++)
		if (ns[i])
			check_command(&traits, ns[i]);
	list_namespaces();
	fake_ctrl_lose();
	close_namespaces(ns);
}

/* --- set-up, events, looks -------------------------------------------------------------------- */

static void check_traits(const struct host_traits *t)
{
	const struct weft_options *o = &fake_ctrl_path->config.options;
	struct weft_ctrl_info info;

	must(t->depth && t->depth <= o->depth);
	must(t->discovery || (t->queues && t->queues <= o->queues));
	must(t->transfer_max >= 4096 && t->transfer_max <= 1 << 20 && t->transfer_max % 4096 == 0);
	must(t->capsule_max <= 1 << 20 && t->capsule_max % 16 == 0);
	must(t->zero_max >= 4096 && t->verify_max >= 4096);
	must(t->aers && t->aers <= HOST_AERS);
	must(t->cntlid <= NVME_CNTLID_MAX);
	weft_ctrl_info(fake_ctrl, &info);
	check_text(info.model, sizeof(info.model));
	check_text(info.serial, sizeof(info.serial));
	check_text(info.firmware, sizeof(info.firmware));
}

static void drain_events(void)
{
	struct weft_event event;
	unsigned n = 0;

	while (weft_ctrl_next_event(fake_ctrl, &event)) {
		must(event.text[0]);
		must(n++ < HOST_EVENTS);
	}
}

static void check_live(struct weft_ns *ns[NAMESPACES])
{
	check_traits(&fake_ctrl_path->assoc.traits);
	for (unsigned i = 0; i < NAMESPACES; i++) {
		if (!ns[i])
			continue;
		check_ns(ns[i]);
		check_command(&fake_ctrl_path->assoc.traits, ns[i]);
	}
}

static void one_controller(void)
{
	struct weft_ns *ns[NAMESPACES];
	struct host_config *config = &fake_ctrl_path->config;
	uint8_t how = u8();

	weft_options_init(&config->options);
	config->options.depth = how & 1 ? 1 : 128;
	config->options.keepalive_ms = how & 2 ? 1000 : 0;
	strcpy(config->subnqn, how & 4 ? NVME_NQN_DISCOVERY : "nqn.2026-11.io.weft:stand-in");
	fake_ctrl_path->assoc.traits.transfer_max = 1 << 20;
	open_namespaces(ns);
	fake_ctrl_lose();
	live(false);
	host_setup_start(fake_ctrl_path);
	for (unsigned i = 0; i < ANSWERS_MAX && input_left() && !fake_ctrl_broken; i++)
		if (!fake_ctrl_answer())
			fake_ctrl_turn(u16());
	if (fake_ctrl_up)
		check_live(ns);
	must(!fake_ctrl_broken || fake_ctrl_path->assoc.why.text[0]);
	drain_events();
	host_keepalive_stop(fake_ctrl_path);
	host_aer_stop(fake_ctrl_path);
	weft_timer_stop(fake_ctrl_path->reactor, &fake_ctrl_path->setup.timer);
	fake_ctrl_lose();
	host_aer_stop(fake_ctrl_path);
	host_ana_stop(fake_ctrl_path);
	host_ana_free(fake_ctrl_path);
	close_namespaces(ns);
}

/* --- what is allocated ------------------------------------------------------------------------ */

/* Whatever a target tells, it tells of the range, and of one block at least. */
static void one_lba_status(void)
{
	enum { ANSWER = 256, MAX = 8 };
	_Alignas(struct nvme_lba_status) char answer[ANSWER] = { 0 };
	uint64_t slba = u32(), blocks = u16() + 1u, told = 0;
	struct weft_ns_extent found[MAX];
	unsigned max = u8() % MAX + 1;
	int n;

	input_bytes(answer, sizeof(answer), sizeof(answer));
	n = host_extents_parse((const struct nvme_lba_status *)answer, sizeof(answer), slba, blocks,
			       found, max);
	must(n == -EPROTO || (n > 0 && n <= (int)max));
	for (int i = 0; i < n; i++) {
		must(found[i].length && (!i || found[i].data != found[i - 1].data));
		told += found[i].length;
	}
	must(n < 0 || told <= blocks);
}

/* --- the program ------------------------------------------------------------------------------ */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fake_ctrl_create();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input_set(data, size);
	switch (u8() % 6) {
	case 0:
		one_address();
		break;
	case 1:
	case 2:
		one_discovery(data[0] % 6 == 2);
		break;
	case 3:
		some_namespaces();
		break;
	case 5:
		one_lba_status();
		break;
	default:
		one_controller();
	}
	drain_events();
	fake_ctrl_reset();
	return 0;
}
