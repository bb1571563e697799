/* stepped.c - a target whose reactors the test turns by hand, and hosts that are mere sockets. */
#include "world/stepped.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/tcp.h"

enum { REST = 3, TURNS_MAX = 100000, WIRES_MAX = 4096, IN_MAX = 4 << 20 };

uint32_t stepped_depth = STEPPED_DEPTH;
struct weft_target *stepped_target;
struct weft_subsys *stepped_subsys;
uint8_t stepped_source;

static struct weft_reactor *control, *worker;
static struct sockaddr_in address;
static struct raw_host *wires[WIRES_MAX];
static unsigned nwires;

static void must(int rc, const struct weft_err *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

/* --- turns ------------------------------------------------------------------------------------ */

enum { TURN_NS = 10000 };

static uint64_t now_ns = 1000000000;

static uint64_t turns_clock(void *arg)
{
	return now_ns;
}

static bool raw_host_take(struct raw_host *raw);

/* What was sent may be on its way through the kernel. */
static bool on_its_way(const struct raw_host *raw)
{
	int unsent = 0;

	return !ioctl(raw->fd, SIOCOUTQ, &unsent) && unsent;
}

static bool raw_host_moves(struct raw_host *raw)
{
	return raw_host_take(raw) || on_its_way(raw);
}

void raw_host_delivered(const struct raw_host *raw)
{
	for (int i = 0; i < TURNS_MAX && on_its_way(raw); i++)
		usleep(100);
}

/* Until nothing has moved for a few turns, which wait for what the kernel is late with. */
void stepped_others(void)
{
	for (unsigned rest = 0; rest < REST; rest++) {
		weft_reactor_turn(worker, rest == REST - 1 ? 1 : 0);
		if (weft_reactor_busy(worker))
			rest = 0;
		for (unsigned i = 0; i < nwires; i++)
			if (raw_host_moves(wires[i]))
				rest = 0;
	}
}

void stepped_control(void)
{
	now_ns += TURN_NS;
	weft_reactor_turn(control, 0);
	stepped_others();
}

void stepped_later(unsigned ms)
{
	now_ns += ms * 1000000ull;
	for (int i = 0; i < 4; i++) /* there, back to control, and what that brings about */
		stepped_control();
}

void stepped_once(void)
{
	now_ns += TURN_NS;
	weft_reactor_turn(control, 0);
	weft_reactor_turn(worker, 0);
	for (unsigned i = 0; i < nwires; i++)
		raw_host_take(wires[i]);
}

/* --- the target ------------------------------------------------------------------------------- */

struct weft_subsys *stepped_subsys_add(const char *nqn)
{
	const struct weft_subsys_options options = { .nqn = nqn, .allow_any_host = true };
	struct weft_err err = { "" };
	struct weft_subsys *s;

	must(weft_subsys_add(stepped_target, &options, &s, &err), &err);
	return s;
}

void stepped_listen(void)
{
	struct weft_err err = { "" };
	struct weft_uri uri;

	must(weft_uri_parse("nvme+tcp://127.0.0.1:0", &uri, &err), &err);
	must(weft_listener_add(stepped_target, &uri, &err), &err);
}

static void note_address(void *arg, const char *text, uint16_t portid)
{
	struct weft_err err = { "" };
	struct weft_uri uri;

	must(weft_uri_parse(text, &uri, &err), &err);
	memcpy(&address, &uri.addr, sizeof(address));
}

struct weft_backend *stepped_backend(const char *text)
{
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	must(weft_spec_parse(text, &spec, &err), &err);
	must(weft_backend_open(&be, &spec, &err), &err);
	return be;
}

void stepped_ns_add(uint32_t nsid, uint32_t block, struct weft_backend *be)
{
	struct weft_ns_options options = { .nsid = nsid, .block = block };
	struct weft_err err = { "" };

	must(weft_ns_add(stepped_subsys, &options, be, &nsid, &err), &err);
}

void stepped_start(void)
{
	static const struct weft_target_visitor visitor = { .listener = note_address };
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						      .cpu = -1,
						      .clock = turns_clock };
	struct weft_target_options target = {
		.reactors = &worker,
		.nreactors = 1,
		.depth_max = stepped_depth,
		.io_queues_max = 64,
		.queues_max = STEPPED_QUEUES,
	};
	struct weft_err err = { "" };

	weft_log_set_level(WEFT_LOG_ERROR);
	must(weft_reactor_create(&control, &options, &err), &err);
	must(weft_reactor_create(&worker, &options, &err), &err);
	target.control = control;
	must(weft_target_create(&stepped_target, &target, &err), &err);
	stepped_listen();
	weft_target_visit(stepped_target, &visitor, NULL);
	stepped_subsys = stepped_subsys_add(STEPPED_NQN);
	stepped_ns_add(1, 512, stepped_backend("mem:1M"));
	for (int i = 0; i < 10; i++)
		stepped_control();
}

static void count_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	++*(unsigned *)arg;
}

unsigned stepped_ctrls(void)
{
	static const struct weft_target_visitor visitor = { .ctrl = count_ctrl };
	unsigned n = 0;

	weft_target_visit(stepped_target, &visitor, &n);
	return n;
}

void stepped_ended(void *arg, int rc, const struct weft_err *err)
{
	*(struct stepped_end *)arg = (struct stepped_end){ true, rc };
}

static void stopped(void *arg)
{
	*(bool *)arg = true;
}

void stepped_stop(void)
{
	bool over = false;

	while (nwires)
		raw_host_close(wires[0]);
	weft_target_stop(stepped_target, stopped, &over);
	for (int i = 0; i < TURNS_MAX && !over; i++)
		stepped_control();
	assert_true(over);
	weft_reactor_destroy(worker);
	weft_reactor_destroy(control);
}

/* --- a connection ----------------------------------------------------------------------------- */

static void take_data(struct raw_host *raw, const uint8_t *pdu, const struct nvme_tcp_hdr *hdr)
{
	struct nvme_tcp_data data;

	memcpy(&data, pdu, sizeof(data));
	raw->data_len = le32_to_cpu(data.datao) + le32_to_cpu(data.datal);
	raw->data = realloc(raw->data, raw->data_len);
	memcpy(raw->data + le32_to_cpu(data.datao), pdu + hdr->pdo, le32_to_cpu(data.datal));
	if (hdr->flags & NVME_TCP_F_SUCCESS) {
		raw->last = (struct nvme_cqe){ .cid = data.cccid };
		raw->answered++;
	}
}

static void take_r2t(struct raw_host *raw, const uint8_t *pdu)
{
	struct nvme_tcp_data r2t;

	memcpy(&r2t, pdu, sizeof(r2t));
	raw->r2ts++;
	raw->r2t_cid = r2t.cccid;
	raw->r2t_tag = r2t.ttag;
}

static void take_pdu(struct raw_host *raw, const uint8_t *pdu)
{
	struct nvme_tcp_hdr hdr;

	memcpy(&hdr, pdu, sizeof(hdr));
	switch (hdr.type) {
	case NVME_TCP_ICRESP:
		raw->answered++;
		break;
	case NVME_TCP_RESP:
		memcpy(&raw->last, pdu + sizeof(hdr), sizeof(raw->last));
		raw->answered++;
		break;
	case NVME_TCP_R2T:
		take_r2t(raw, pdu);
		break;
	case NVME_TCP_C2H_DATA:
		take_data(raw, pdu, &hdr);
		break;
	default:
		fail_msg("PDU of type %u", hdr.type);
	}
}

static size_t pdu_at(const struct raw_host *raw, size_t at)
{
	struct nvme_tcp_hdr hdr;

	if (raw->nin - at < sizeof(hdr))
		return 0;
	memcpy(&hdr, raw->in + at, sizeof(hdr));
	return le32_to_cpu(hdr.plen) <= raw->nin - at ? le32_to_cpu(hdr.plen) : 0;
}

/* True: something came. */
static bool raw_host_take(struct raw_host *raw)
{
	size_t at = 0, len;
	ssize_t got;

	if (raw->stalls)
		return false;
	got = recv(raw->fd, raw->in + raw->nin, IN_MAX - raw->nin, MSG_DONTWAIT);
	if (got <= 0)
		return false;
	raw->nin += (size_t)got;
	while ((len = pdu_at(raw, at))) {
		take_pdu(raw, raw->in + at);
		at += len;
	}
	raw->nin -= at;
	memmove(raw->in, raw->in + at, raw->nin);
	return true;
}

uint16_t raw_host_wait(struct raw_host *raw)
{
	for (int i = 0; i < TURNS_MAX && raw->answered < raw->sent; i++)
		stepped_control();
	assert_int_equal(raw->answered, raw->sent);
	return le16_to_cpu(raw->last.status) >> 1;
}

static void put(struct raw_host *raw, const void *bytes, size_t len)
{
	assert_int_equal(send(raw->fd, bytes, len, MSG_NOSIGNAL), len);
}

static void bind_source(int fd)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(0x7f000000u | stepped_source) };

	if (stepped_source)
		assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
}

struct raw_host *raw_host_open(void)
{
	const struct nvme_tcp_icreq icreq = {
		.hdr = { .type = NVME_TCP_ICREQ,
			 .hlen = sizeof(icreq),
			 .plen = cpu_to_le32(sizeof(icreq)) },
	};
	struct raw_host *raw = calloc(1, sizeof(*raw));

	assert_true(raw && nwires < WIRES_MAX);
	raw->in = malloc(IN_MAX);
	raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(raw->in && raw->fd >= 0);
	bind_source(raw->fd);
	assert_int_equal(connect(raw->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(raw->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	wires[nwires++] = raw;
	raw->sent++;
	put(raw, &icreq, sizeof(icreq));
	return raw;
}

void raw_host_close(struct raw_host *raw)
{
	unsigned i = 0;

	while (wires[i] != raw)
		i++;
	wires[i] = wires[--nwires];
	close(raw->fd);
	free(raw->data);
	free(raw->in);
	free(raw);
}

void raw_host_send(struct raw_host *raw, union nvme_sqe *sqe, const void *data, size_t len)
{
	bool inside = data;
	struct nvme_tcp_cmd cmd = {
		.hdr = { .type = NVME_TCP_CMD,
			 .hlen = sizeof(cmd),
			 .pdo = inside ? sizeof(cmd) : 0,
			 .plen = cpu_to_le32((uint32_t)(sizeof(cmd) + (inside ? len : 0))) },
	};

	sqe->bytes[1] |= 0x40; /* SGL */
	sqe->common.cid = cpu_to_le16(raw->cid++);
	sqe->common.sgl.length = cpu_to_le32((uint32_t)len);
	sqe->common.sgl.type = inside ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT;
	cmd.sqe = *sqe;
	raw->sent++;
	put(raw, &cmd, sizeof(cmd));
	if (inside)
		put(raw, data, len);
}

void raw_host_send_data(struct raw_host *raw, const void *data, size_t len)
{
	const struct nvme_tcp_data pdu = {
		.hdr = { .type = NVME_TCP_H2C_DATA,
			 .flags = NVME_TCP_F_LAST,
			 .hlen = sizeof(pdu),
			 .pdo = sizeof(pdu),
			 .plen = cpu_to_le32((uint32_t)(sizeof(pdu) + len)) },
		.cccid = raw->r2t_cid,
		.ttag = raw->r2t_tag,
		.datal = cpu_to_le32((uint32_t)len),
	};

	put(raw, &pdu, sizeof(pdu));
	put(raw, data, len);
}

void raw_host_send_keys(struct raw_host *raw, uint32_t nsid, uint8_t opcode, uint32_t cdw10,
			uint64_t crkey, uint64_t key)
{
	union nvme_sqe sqe = { .common = { .opcode = opcode,
					   .nsid = cpu_to_le32(nsid),
					   .cdw10 = cpu_to_le32(cdw10) } };
	const uint64_t keys[2] = { crkey, key };

	raw_host_send(raw, &sqe, keys, opcode == nvme_cmd_resv_release ? 8 : 16);
}

/* --- commands --------------------------------------------------------------------------------- */

struct nvmf_connect_data stepped_connect_data(const char *subnqn, const char *hostnqn,
					      unsigned hostid, uint16_t cntlid)
{
	struct nvmf_connect_data data = { .cntlid = cpu_to_le16(cntlid) };

	memcpy(data.hostid, &hostid, sizeof(hostid));
	snprintf(data.subsysnqn, sizeof(data.subsysnqn), "%s", subnqn);
	snprintf(data.hostnqn, sizeof(data.hostnqn), "%s", hostnqn);
	return data;
}

void raw_host_connect_send(struct raw_host *raw, const struct nvmf_connect_data *data, uint16_t qid,
			   uint32_t kato)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .fctype = NVMF_CONNECT,
					    .qid = cpu_to_le16(qid),
					    .sqsize = cpu_to_le16((uint16_t)(stepped_depth - 1)),
					    .cattr = NVMF_CATTR_NO_SQ_FLOW,
					    .kato = cpu_to_le32(kato) } };

	raw_host_send(raw, &sqe, data, sizeof(*data));
}

struct raw_host *stepped_admin(const char *subnqn, const char *hostnqn, unsigned hostid,
			       uint16_t *cntlid)
{
	const struct nvmf_connect_data data = stepped_connect_data(subnqn, hostnqn, hostid,
								   NVME_CNTLID_DYNAMIC);
	union nvme_sqe enable = { .property = { .opcode = NVME_FABRICS_OPCODE,
						.fctype = NVMF_PROPERTY_SET,
						.offset = cpu_to_le32(NVME_REG_CC),
						.value = cpu_to_le64(0x460001) } };
	struct raw_host *raw = raw_host_open();

	raw_host_wait(raw);
	raw_host_connect_send(raw, &data, 0, 0);
	assert_int_equal(raw_host_wait(raw), 0);
	*cntlid = (uint16_t)le64_to_cpu(raw->last.result);
	raw_host_send(raw, &enable, NULL, 0);
	assert_int_equal(raw_host_wait(raw), 0);
	return raw;
}

struct raw_host *stepped_io(const char *hostnqn, unsigned hostid, uint16_t cntlid, uint16_t qid)
{
	const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, hostnqn, hostid,
								   cntlid);
	struct raw_host *raw = raw_host_open();

	raw_host_wait(raw);
	raw_host_connect_send(raw, &data, qid, 0);
	assert_int_equal(raw_host_wait(raw), 0);
	return raw;
}
