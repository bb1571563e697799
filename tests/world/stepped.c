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

struct weft_target *turned_target;
struct weft_subsys *turned_subsys;
uint8_t turned_source;

static struct weft_reactor *control, *worker;
static struct sockaddr_in address;
static struct wire *wires[WIRES_MAX];
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

static bool wire_take(struct wire *wire);

/* What was sent may be on its way through the kernel. */
static bool on_its_way(const struct wire *wire)
{
	int unsent = 0;

	return !ioctl(wire->fd, SIOCOUTQ, &unsent) && unsent;
}

static bool wire_moves(struct wire *wire)
{
	return wire_take(wire) || on_its_way(wire);
}

void wire_delivered(const struct wire *wire)
{
	for (int i = 0; i < TURNS_MAX && on_its_way(wire); i++)
		usleep(100);
}

/* Until nothing has moved for a few turns, which wait for what the kernel is late with. */
void turned_others(void)
{
	for (unsigned rest = 0; rest < REST; rest++) {
		weft_reactor_turn(worker, rest == REST - 1 ? 1 : 0);
		if (weft_reactor_busy(worker))
			rest = 0;
		for (unsigned i = 0; i < nwires; i++)
			if (wire_moves(wires[i]))
				rest = 0;
	}
}

void turned_home(void)
{
	now_ns += TURN_NS;
	weft_reactor_turn(control, 0);
	turned_others();
}

void turned_later(unsigned ms)
{
	now_ns += ms * 1000000ull;
	for (int i = 0; i < 4; i++) /* there, back to control, and what that brings about */
		turned_home();
}

void turned_once(void)
{
	now_ns += TURN_NS;
	weft_reactor_turn(control, 0);
	weft_reactor_turn(worker, 0);
	for (unsigned i = 0; i < nwires; i++)
		wire_take(wires[i]);
}

/* --- the target ------------------------------------------------------------------------------- */

struct weft_subsys *turned_subsys_add(const char *nqn)
{
	const struct weft_subsys_options options = { .nqn = nqn, .allow_any_host = true };
	struct weft_err err = { "" };
	struct weft_subsys *s;

	must(weft_subsys_add(turned_target, &options, &s, &err), &err);
	return s;
}

void turned_listen(void)
{
	struct weft_err err = { "" };
	struct weft_uri uri;

	must(weft_uri_parse("nvme+tcp://127.0.0.1:0", &uri, &err), &err);
	must(weft_listener_add(turned_target, &uri, &err), &err);
}

static void note_address(void *arg, const char *text, uint16_t portid)
{
	struct weft_err err = { "" };
	struct weft_uri uri;

	must(weft_uri_parse(text, &uri, &err), &err);
	memcpy(&address, &uri.addr, sizeof(address));
}

struct weft_backend *turned_backend(const char *text)
{
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	must(weft_spec_parse(text, &spec, &err), &err);
	must(weft_backend_open(&be, &spec, &err), &err);
	return be;
}

void turned_ns_add(uint32_t nsid, uint32_t block, struct weft_backend *be)
{
	struct weft_ns_options options = { .nsid = nsid, .block = block };
	struct weft_err err = { "" };

	must(weft_ns_add(turned_subsys, &options, be, &nsid, &err), &err);
}

void turned_start(void)
{
	static const struct weft_target_visitor visitor = { .listener = note_address };
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						      .cpu = -1,
						      .clock = turns_clock };
	struct weft_target_options target = {
		.reactors = &worker,
		.nreactors = 1,
		.depth_max = TURNED_DEPTH,
		.io_queues_max = 64,
		.queues_max = TURNED_QUEUES,
	};
	struct weft_err err = { "" };

	weft_log_set_level(WEFT_LOG_ERROR);
	must(weft_reactor_create(&control, &options, &err), &err);
	must(weft_reactor_create(&worker, &options, &err), &err);
	target.control = control;
	must(weft_target_create(&turned_target, &target, &err), &err);
	turned_listen();
	weft_target_visit(turned_target, &visitor, NULL);
	turned_subsys = turned_subsys_add(TURNED_NQN);
	turned_ns_add(1, 512, turned_backend("mem:1M"));
	for (int i = 0; i < 10; i++)
		turned_home();
}

static void count_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	++*(unsigned *)arg;
}

unsigned turned_ctrls(void)
{
	static const struct weft_target_visitor visitor = { .ctrl = count_ctrl };
	unsigned n = 0;

	weft_target_visit(turned_target, &visitor, &n);
	return n;
}

void turned_ended(void *arg, int rc, const struct weft_err *err)
{
	*(struct turned_end *)arg = (struct turned_end){ true, rc };
}

static void stopped(void *arg)
{
	*(bool *)arg = true;
}

void turned_stop(void)
{
	bool over = false;

	while (nwires)
		wire_close(wires[0]);
	weft_target_stop(turned_target, stopped, &over);
	for (int i = 0; i < TURNS_MAX && !over; i++)
		turned_home();
	assert_true(over);
	weft_reactor_destroy(worker);
	weft_reactor_destroy(control);
}

/* --- a connection ----------------------------------------------------------------------------- */

static void take_data(struct wire *wire, const uint8_t *pdu, const struct nvme_tcp_hdr *hdr)
{
	struct nvme_tcp_data data;

	memcpy(&data, pdu, sizeof(data));
	wire->data_len = le32_to_cpu(data.datao) + le32_to_cpu(data.datal);
	wire->data = realloc(wire->data, wire->data_len);
	memcpy(wire->data + le32_to_cpu(data.datao), pdu + hdr->pdo, le32_to_cpu(data.datal));
	if (hdr->flags & NVME_TCP_F_SUCCESS) {
		wire->last = (struct nvme_cqe){ .cid = data.cccid };
		wire->answered++;
	}
}

static void take_pdu(struct wire *wire, const uint8_t *pdu)
{
	struct nvme_tcp_hdr hdr;

	memcpy(&hdr, pdu, sizeof(hdr));
	switch (hdr.type) {
	case NVME_TCP_ICRESP:
		wire->answered++;
		break;
	case NVME_TCP_RESP:
		memcpy(&wire->last, pdu + sizeof(hdr), sizeof(wire->last));
		wire->answered++;
		break;
	case NVME_TCP_R2T:
		wire->r2ts++;
		break;
	case NVME_TCP_C2H_DATA:
		take_data(wire, pdu, &hdr);
		break;
	default:
		fail_msg("PDU of type %u", hdr.type);
	}
}

static size_t pdu_at(const struct wire *wire, size_t at)
{
	struct nvme_tcp_hdr hdr;

	if (wire->nin - at < sizeof(hdr))
		return 0;
	memcpy(&hdr, wire->in + at, sizeof(hdr));
	return le32_to_cpu(hdr.plen) <= wire->nin - at ? le32_to_cpu(hdr.plen) : 0;
}

/* True: something came. */
static bool wire_take(struct wire *wire)
{
	size_t at = 0, len;
	ssize_t got;

	if (wire->stalls)
		return false;
	got = recv(wire->fd, wire->in + wire->nin, IN_MAX - wire->nin, MSG_DONTWAIT);
	if (got <= 0)
		return false;
	wire->nin += (size_t)got;
	while ((len = pdu_at(wire, at))) {
		take_pdu(wire, wire->in + at);
		at += len;
	}
	wire->nin -= at;
	memmove(wire->in, wire->in + at, wire->nin);
	return true;
}

uint16_t wire_wait(struct wire *wire)
{
	for (int i = 0; i < TURNS_MAX && wire->answered < wire->sent; i++)
		turned_home();
	assert_int_equal(wire->answered, wire->sent);
	return le16_to_cpu(wire->last.status) >> 1;
}

static void put(struct wire *wire, const void *bytes, size_t len)
{
	assert_int_equal(send(wire->fd, bytes, len, MSG_NOSIGNAL), len);
}

static void bind_source(int fd)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(0x7f000000u | turned_source) };

	if (turned_source)
		assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
}

struct wire *wire_open(void)
{
	const struct nvme_tcp_icreq icreq = {
		.hdr = { .type = NVME_TCP_ICREQ,
			 .hlen = sizeof(icreq),
			 .plen = cpu_to_le32(sizeof(icreq)) },
	};
	struct wire *wire = calloc(1, sizeof(*wire));

	assert_true(wire && nwires < WIRES_MAX);
	wire->in = malloc(IN_MAX);
	wire->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(wire->in && wire->fd >= 0);
	bind_source(wire->fd);
	assert_int_equal(connect(wire->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	wires[nwires++] = wire;
	wire->sent++;
	put(wire, &icreq, sizeof(icreq));
	return wire;
}

void wire_close(struct wire *wire)
{
	unsigned i = 0;

	while (wires[i] != wire)
		i++;
	wires[i] = wires[--nwires];
	close(wire->fd);
	free(wire->data);
	free(wire->in);
	free(wire);
}

void wire_send(struct wire *wire, union nvme_sqe *sqe, const void *data, size_t len)
{
	bool inside = data;
	struct nvme_tcp_cmd cmd = {
		.hdr = { .type = NVME_TCP_CMD,
			 .hlen = sizeof(cmd),
			 .pdo = inside ? sizeof(cmd) : 0,
			 .plen = cpu_to_le32((uint32_t)(sizeof(cmd) + (inside ? len : 0))) },
	};

	sqe->bytes[1] |= 0x40; /* SGL */
	sqe->common.cid = cpu_to_le16(wire->cid++);
	sqe->common.sgl.length = cpu_to_le32((uint32_t)len);
	sqe->common.sgl.type = inside ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT;
	cmd.sqe = *sqe;
	wire->sent++;
	put(wire, &cmd, sizeof(cmd));
	if (inside)
		put(wire, data, len);
}

void wire_send_keys(struct wire *wire, uint32_t nsid, uint8_t opcode, uint32_t cdw10,
		    uint64_t crkey, uint64_t key)
{
	union nvme_sqe sqe = { .common = { .opcode = opcode,
					   .nsid = cpu_to_le32(nsid),
					   .cdw10 = cpu_to_le32(cdw10) } };
	const uint64_t keys[2] = { crkey, key };

	wire_send(wire, &sqe, keys, opcode == nvme_cmd_resv_release ? 8 : 16);
}

/* --- commands --------------------------------------------------------------------------------- */

struct nvmf_connect_data turned_connect_data(const char *subnqn, const char *hostnqn,
					     unsigned hostid, uint16_t cntlid)
{
	struct nvmf_connect_data data = { .cntlid = cpu_to_le16(cntlid) };

	memcpy(data.hostid, &hostid, sizeof(hostid));
	snprintf(data.subsysnqn, sizeof(data.subsysnqn), "%s", subnqn);
	snprintf(data.hostnqn, sizeof(data.hostnqn), "%s", hostnqn);
	return data;
}

void wire_connect_send(struct wire *wire, const struct nvmf_connect_data *data, uint16_t qid,
		       uint32_t kato)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .fctype = NVMF_CONNECT,
					    .qid = cpu_to_le16(qid),
					    .sqsize = cpu_to_le16(TURNED_DEPTH - 1),
					    .cattr = NVMF_CATTR_NO_SQ_FLOW,
					    .kato = cpu_to_le32(kato) } };

	wire_send(wire, &sqe, data, sizeof(*data));
}

struct wire *turned_admin(const char *subnqn, const char *hostnqn, unsigned hostid,
			  uint16_t *cntlid)
{
	const struct nvmf_connect_data data = turned_connect_data(subnqn, hostnqn, hostid,
								  NVME_CNTLID_DYNAMIC);
	union nvme_sqe enable = { .property = { .opcode = NVME_FABRICS_OPCODE,
						.fctype = NVMF_PROPERTY_SET,
						.offset = cpu_to_le32(NVME_REG_CC),
						.value = cpu_to_le64(0x460001) } };
	struct wire *wire = wire_open();

	wire_wait(wire);
	wire_connect_send(wire, &data, 0, 0);
	assert_int_equal(wire_wait(wire), 0);
	*cntlid = (uint16_t)le64_to_cpu(wire->last.result);
	wire_send(wire, &enable, NULL, 0);
	assert_int_equal(wire_wait(wire), 0);
	return wire;
}

struct wire *turned_io(const char *hostnqn, unsigned hostid, uint16_t cntlid, uint16_t qid)
{
	const struct nvmf_connect_data data = turned_connect_data(TURNED_NQN, hostnqn, hostid,
								  cntlid);
	struct wire *wire = wire_open();

	wire_wait(wire);
	wire_connect_send(wire, &data, qid, 0);
	assert_int_equal(wire_wait(wire), 0);
	return wire;
}
