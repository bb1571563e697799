/* fuzz_rdma.c - NVMe/RDMA connections from beginning to end: hosts, their target and its user, and
 * the adapter between them, as a program.
 *
 *   input: what the adapter is like (2 bytes), then a program (program.h)
 *
 * The adapter works when the program says so: a request is carried out late, in part, badly or
 * never. After the program every host that kept the rules must have its answers; then all of them
 * close, and nothing may be left: no queue pair, controller or buffer (world_end), nothing of the
 * adapter's. */
#include <string.h>

#include "adapter_ops.h"
#include "must.h"
#include "peer/commands.h"
#include "peer/input.h"
#include "peer/rdma_host.h"
#include "program.h"
#include "target_ops.h"
#include "transport/transport.h"
#include "world/world.h"

#define PORT   4420
#define LISTEN "nvme+rdma://127.0.0.1:4420"

enum { HOSTS = 6, SETTLE = 4 };

static struct rdma_host hosts[HOSTS];
static const char *device;

/* --- the input -------------------------------------------------------------------------------- */

static struct rdma_host *pick_host(void)
{
	return &hosts[u8() % HOSTS];
}

/* A host's end of a connection (even), or the target's; NULL: there is none. */
struct ibv_qp *pick_qp(void)
{
	uint8_t which = u8();
	const struct rdma_host *h = &hosts[which / 2 % HOSTS];

	if (!h->channel)
		return NULL;
	return which % 2 ? rdma_host_peer(h) : h->id->qp;
}

/* --- the adapter's turn ----------------------------------------------------------------------- */

/* What the target asks for next is looked at. */
void adapter_look(struct ibv_qp *qp)
{
	const struct ibv_send_wr *wr = fabric_next(qp);

	for (unsigned i = 0; wr && i < HOSTS; i++)
		if (hosts[i].channel && hosts[i].id->qp && fabric_peer(qp) == hosts[i].id->qp)
			rdma_host_check(&hosts[i], wr);
}

/* --- everybody's turn ------------------------------------------------------------------------- */

/* True: something moved. */
static bool turn_until_idle(void)
{
	bool moved = false;

	for (unsigned i = 0; i < SETTLE; i++) {
		moved |= adapter_run();
		world_turn(2);
		for (unsigned j = 0; j < HOSTS; j++)
			moved |= rdma_host_hear(&hosts[j]);
	}
	return moved;
}

/* They may have been about to sleep. */
static void op_turn(void)
{
	uint8_t how = u8();

	if (how & 32) {
		world_doze();
		adapter_run();
	}
	turn_some(how);
}

static void op_hear(void)
{
	struct rdma_host *h = pick_host();
	uint8_t how = u8();

	h->deaf = how % 2;
	rdma_host_hear(h);
}

/* --- connections ------------------------------------------------------------------------------ */

/* The controller that another host was given, or one that nobody was. */
static uint16_t cntlid_of(uint8_t which)
{
	return which < HOSTS ? hosts[which].cntlid : NVME_CNTLID_DYNAMIC;
}

static void op_open(void)
{
	struct rdma_host *h = pick_host();
	struct rdma_host_request request = { .qid = u8() };
	uint8_t options = u8();
	uint32_t len;

	request.hsqsize = u16();
	request.cntlid = request.qid ? cntlid_of(u8()) : 0;
	request.reads = options & 31;
	request.rnr_retries = options & 32 ? u8() : 7;
	if (options & 64) { /* any private data */
		request.bytes = input_take(u8() % 57, &len);
		request.len = (uint8_t)len;
	}
	if (!h->channel && rdma_host_open(h, PORT))
		rdma_host_ask(h, &request);
}

/* The length that the program says, within the host's memory. */
static uint32_t length_or(uint32_t len)
{
	form_take_length(&len);
	return len < RHOST_DATA - 65536 ? len : RHOST_DATA - 65536;
}

static void connect_host(struct rdma_host *h, const struct form_connect *c)
{
	static char capsule[RHOST_CAPSULE];
	struct nvmf_connect_data data;
	uint32_t len = length_or(sizeof(data));
	bool inside = c->in_capsule && len <= 4096;
	union nvme_sqe sqe;

	form_connect(c, &sqe, &data);
	memcpy(capsule, &data, sizeof(data));
	if (inside) {
		sqe.connect.sgl.type = NVME_SGL_IN_CAPSULE;
		sqe.connect.sgl.length = cpu_to_le32(len);
	} else if (h->channel) {
		memcpy(h->memory->data, &data, sizeof(data));
		nvme_keyed_sgl_set((struct nvme_keyed_sgl *)&sqe.connect.sgl,
				   (uintptr_t)h->memory->data, len, rdma_host_key(h, false));
	}
	if (h->channel)
		rdma_host_command(h, &sqe, capsule, inside ? len : 0);
}

static void op_connect(void)
{
	struct rdma_host *h = pick_host();
	struct form_connect c;

	form_read_connect(&c, cntlid_of);
	connect_host(h, &c);
}

static struct rdma_host *free_host(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (!hosts[i].channel)
			return &hosts[i];
	return NULL;
}

/* A queue, up to its Connect's answer. */
static struct rdma_host *begin_queue(uint8_t reads, const struct form_connect *c)
{
	const struct rdma_host_request request = { .qid = c->qid,
						   .hsqsize = c->sqsize,
						   .cntlid = c->qid ? c->cntlid : 0,
						   .reads = reads,
						   .rnr_retries = 7 };
	struct rdma_host *h = free_host();

	if (!h || !rdma_host_open(h, PORT))
		return NULL;
	rdma_host_ask(h, &request);
	turn_until_idle();
	connect_host(h, c);
	turn_until_idle();
	return h;
}

/* An enabled controller with one I/O queue, as most programs begin. */
static void op_session(void)
{
	uint8_t reads = u8(), options = u8(), sqsize = u8();
	struct form_connect c = { .sqsize = 31,
				  .cntlid = NVME_CNTLID_DYNAMIC,
				  .subsys = options & 3,
				  .no_flow = options & 8,
				  .in_capsule = options & 4 };
	struct rdma_host *admin = begin_queue(reads, &c);
	union nvme_sqe sqe;

	if (!admin)
		return;
	form_enable(&sqe);
	rdma_host_command(admin, &sqe, NULL, 0);
	turn_until_idle();
	c.qid = options >> 6;
	c.sqsize = sqsize;
	c.cntlid = admin->cntlid;
	if (c.subsys != 2)
		begin_queue(reads, &c);
}

static void op_close(void)
{
	struct rdma_host *h = pick_host();
	uint8_t how = u8();

	if (!h->channel)
		return;
	if (how % 4 == 1)
		fabric_verbs.disconnect(h->id);
	else if (how % 4 == 2 && h->id->qp && h->asked)
		rdma_host_cut(h);
	else
		rdma_host_close(h);
}

/* --- commands --------------------------------------------------------------------------------- */

/* Follows: how many blocks, where, and if their key is invalidated. */
enum { CMD_PLACE = 1 << 5 };

/* What a capsule has behind its command. */
static struct {
	char bytes[RHOST_CAPSULE];
	uint32_t len;
} tail;

static uint64_t address(struct rdma_host *h, uint32_t offset)
{
	return (uintptr_t)h->memory->data + offset;
}

/* @n blocks that share @len bytes from @offset on; the first ones may have nothing. */
static void list_blocks(struct rdma_host *h, union nvme_sqe *sqe, uint32_t offset, uint32_t len,
			unsigned n, uint32_t key)
{
	struct nvme_keyed_sgl block;
	uint32_t each = len / n, at = 0;

	for (unsigned i = 0; i < n; i++, at += each) {
		nvme_keyed_sgl_set(&block, address(h, offset + at), i + 1 < n ? each : len - at,
				   key);
		memcpy(tail.bytes + i * sizeof(block), &block, sizeof(block));
	}
	tail.len = n * (uint32_t)sizeof(block);
	sqe->common.sgl = (struct nvme_sgl){ .length = cpu_to_le32(tail.len),
					     .type = NVME_SGL_LAST_IN_CAPSULE };
}

static void place_blocks(struct rdma_host *h, union nvme_sqe *sqe, uint8_t flags, uint32_t len)
{
	struct nvme_keyed_sgl *sgl = (struct nvme_keyed_sgl *)&sqe->common.sgl;
	uint8_t how = flags & CMD_PLACE ? u8() : 0;
	uint32_t offset = flags & CMD_PLACE ? u16() : 0, key = rdma_host_key(h, how & 64);
	unsigned n = how % 32;

	if (n > 1) {
		list_blocks(h, sqe, 0, len, n, key);
	} else {
		nvme_keyed_sgl_set(sgl, address(h, offset), len, key);
		sgl->type = how & 64 ? NVME_SGL_KEYED_INVALIDATE : NVME_SGL_KEYED;
	}
}

static void place_data(struct rdma_host *h, union nvme_sqe *sqe, uint8_t flags, uint32_t len)
{
	struct nvme_sgl *sgl = &sqe->common.sgl;

	tail.len = 0;
	len = length_or(len);
	if (flags & CMD_IN_CAPSULE && form_is_to_ctrl(sqe) && len <= RHOST_CAPSULE - 64) {
		memset(tail.bytes, 0, len);
		tail.len = len;
		*sgl = (struct nvme_sgl){ .length = cpu_to_le32(len), .type = NVME_SGL_IN_CAPSULE };
		h->tainted |= len > 4096;
	} else {
		place_blocks(h, sqe, flags, len);
	}
	if (flags & CMD_SGL) {
		sgl->type = u8();
		sgl->length = cpu_to_le32(u32());
		sgl->addr = cpu_to_le64(u8());
		h->tainted = true;
	}
}

static void op_command(void)
{
	struct rdma_host *h = pick_host();
	uint8_t flags;
	union nvme_sqe sqe;
	uint32_t given, len = form_read(&sqe, &flags);
	const uint8_t *at;

	if (!h->channel)
		return;
	place_data(h, &sqe, flags, len);
	at = input_take(flags & CMD_DATA ? u8() : 0, &given);
	memcpy(tail.len ? tail.bytes : h->memory->data, at,
	       tail.len && given > tail.len ? tail.len : given);
	rdma_host_command(h, &sqe, tail.bytes, tail.len);
}

static bool is_quiet(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts[i].channel && hosts[i].open)
			return false;
	return true;
}

/* @count blocks between the memory at @offset and the namespace; true: it went well. */
static bool move_blocks(struct rdma_host *h, bool write, uint16_t lba, uint32_t count, unsigned n,
			uint32_t offset)
{
	union nvme_sqe sqe;

	form_begin(&sqe, form_kind(write), 0, NS_MEM);
	form_fill(&sqe, FORM_BLOCKS, 0, lba, count - 1);
	list_blocks(h, &sqe, offset, count * 512, n, rdma_host_key(h, false));
	h->status = UINT16_MAX;
	rdma_host_command(h, &sqe, tail.bytes, tail.len);
	turn_until_idle();
	return !h->status;
}

/* What is written is read again, however it is cut. */
static void op_verify(void)
{
	struct rdma_host *h = pick_host();
	uint8_t cut = u8(), count = u8();
	uint16_t lba = u16() % 256;
	char *data = h->memory ? h->memory->data : NULL;
	uint32_t len = count * 512u;

	turn_until_idle(); /* what the user has begun is over */
	if (!h->channel || h->deaf || !h->connected || !h->qid || !count || !is_quiet())
		return;
	for (uint32_t i = 0; i < len; i++)
		data[i] = (char)(i / 251 + i + cut);
	if (move_blocks(h, true, lba, count, cut % 15 + 2u, 0) &&
	    move_blocks(h, false, lba, count, cut / 16 + 2u, len))
		must(!memcmp(data, data + len, len));
}

/* A capsule of any bytes; @more of them are zeroes. */
static void op_raw(void)
{
	static char capsule[RHOST_CAPSULE];
	struct rdma_host *h = pick_host();
	uint32_t len, more;
	const uint8_t *at = input_take(u8(), &len);

	more = u16() % (RHOST_CAPSULE - UINT8_MAX);
	memset(capsule, 0, sizeof(capsule));
	memcpy(capsule, at, len);
	if (h->channel)
		rdma_host_raw(h, capsule, len + more);
}

/* --- the adapter's troubles ------------------------------------------------------------------- */

/* An event for the target's end, out of the blue. */
static void op_event(void)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_DISCONNECTED,   RDMA_CM_EVENT_ESTABLISHED,
		RDMA_CM_EVENT_TIMEWAIT_EXIT,  RDMA_CM_EVENT_ADDR_CHANGE,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_CONNECT_ERROR,
		RDMA_CM_EVENT_UNREACHABLE,    RDMA_CM_EVENT_REJECTED,
	};
	struct rdma_host *h = pick_host();
	uint8_t type = u8();
	int status = (int8_t)u8();
	struct ibv_qp *peer = rdma_host_peer(h);

	if (peer)
		fabric_event(fabric_id_of(peer), types[type % 8], status);
}

/* Events come late; some others come meanwhile. */
static void op_delay(void)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ESTABLISHED,
		RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_CONNECT_REQUEST,
		RDMA_CM_EVENT_DEVICE_REMOVAL,
	};

	delay_events(types, 4);
}

static void op_fail(void)
{
	struct ibv_qp *qp = pick_qp();
	uint8_t status = u8();

	if (!qp)
		return;
	if (status == 0xff)
		fabric_time_out(qp);
	else
		adapter_fail_next(qp, status & 0x80, status & 0x7f);
}

static void op_device(void)
{
	uint8_t how = u8();

	if (how % 3 == 0)
		adapter_remove();
	else if (how % 3 == 1)
		adapter_restore();
	else
		fabric_async(device, IBV_EVENT_PORT_ERR);
}

static void op_listener(void)
{
	if (u8() % 2)
		world_listen_soon(LISTEN);
	else
		world_unlisten_soon(LISTEN);
}

/* --- the program ------------------------------------------------------------------------------ */

/* seeds_rdma.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,   op_step,     op_part,  op_hear,   op_session, op_open,     op_connect,
	op_close,  op_command,  op_raw,   op_event,  op_delay,   op_fault,    op_fail,
	op_device, op_listener, op_clock, op_ns,     op_subsys,  op_slow,     op_starve,
	op_feed,   op_look,     op_stop,  op_verify, op_length,  op_takeover,
};

/* What adapters differ in. */
static bool harness_begin(void)
{
	uint8_t kind = u8(), limits = u8();
	struct ibv_device_attr *attr;

	device = kind % 2 ? "iwarp0" : "fake0";
	adapter_begin(device);
	attr = &fabric_device(device)->attr;
	if (kind & 2)
		attr->max_srq = 0;
	if (kind & 4)
		attr->max_srq_wr = 8;
	if (kind & 8)
		attr->max_qp_wr = 32 + limits % 64;
	if (kind & 16)
		attr->max_qp_init_rd_atom = limits % 4;
	if (kind & 32)
		attr->max_mr = limits;
	if (kind & 64)
		fabric_device(device)->invalidates = false;
	world_listen(LISTEN);
	return true;
}

static void harness_finish(void)
{
	adapter_mend();
	fabric_deliver();
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].deaf = false;
	run_dry();
	for (unsigned i = 0; i < HOSTS && !adapter_has_failed(); i++)
		rdma_host_check_settled(&hosts[i]);
}

static void harness_end(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		rdma_host_close(&hosts[i]);
	form_forget_length();
	world_end();
	world_unlisten(LISTEN);
	world_turn(4);
	adapter_end();
}

const struct program program = {
	.create = world_create,
	.begin = harness_begin,
	PROGRAM_OPS(ops),
	.ops_max = 250,
	.settle = turn_until_idle,
	.finish = harness_finish,
	.end = harness_end,
};
