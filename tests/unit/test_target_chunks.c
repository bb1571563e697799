/* test_target_chunks.c - what commands keep of what all connections receive into.
 *
 * Data that comes in a capsule stays in the chunk that it was received in until its command is
 * answered. Hosts send such commands that last, on many queues; what is counted is the chunks that
 * are in use then, and others go on, whatever is left. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "proto/tcp.h"
#include "target/internal.h"
#include "transport/tcp/tcp.h"
#include "world/stepped.h"

enum {
	BLOCK = 4096,
	LARGE = TCP_CAPSULE_BYTES, /* as much as a capsule brings */
	QUEUES = 40,
	COMMANDS = STEPPED_DEPTH - 1,
	TURNS_MAX = 100000,
	COPIED = 2, /* a namespace that is large enough for long Copies */
	OTHERS = 3, /* one that another host uses */
	SLOW = 4,   /* one whose storage answers when the test says so */
};

#define MIB ((size_t)1 << 20)

static struct weft_poll_group *group(void)
{
	return stepped_target->poll_groups[0];
}

static unsigned chunks_in_use(void)
{
	const struct weft_pool *chunks = &tcp_poll_group_of(group())->chunks;

	return chunks->count - chunks->nfree;
}

static unsigned connections(void)
{
	return atomic_load(&group()->nqpairs);
}

/* --- storage that is slow --------------------------------------------------------------------- */

static struct weft_list kept = { &kept, &kept }; /* weft_io.op.link */
static unsigned nkept;

static int slow_submit(struct weft_backend *be, struct weft_io *io)
{
	weft_list_push(&kept, &io->op.link);
	nkept++;
	return 0;
}

static void slow_answer(struct weft_msg *msg)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&kept))) {
		struct weft_io *io = container_of(link, struct weft_io, op.link);

		nkept--;
		io->done(io, 0);
	}
}

static void slow_close(struct weft_backend *be)
{
	free(be->spec);
	free(be);
}

static struct weft_backend *open_slow(void)
{
	static const struct weft_backend_ops ops = { .type = "slow",
						     .submit = slow_submit,
						     .close = slow_close };
	struct weft_backend *be = calloc(1, sizeof(*be));

	*be = (struct weft_backend){
		.ops = &ops,
		.size = MIB,
		.align = 1,
		.block_min = 512,
		.spec = strdup("null:1M"),
	};
	return be;
}

static void storage_answers(void)
{
	static struct weft_msg msg = { .fn = slow_answer };

	weft_reactor_post(group()->reactor, &msg);
	for (unsigned turns = 0; nkept; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
}

/* --- a host that floods ----------------------------------------------------------------------- */

/* Sends as much of the same capsule, again and again, as the socket takes. */
struct pour {
	struct raw_host *raw;
	struct nvme_tcp_cmd cmd;
	char data[LARGE];
	size_t at; /* bytes of it that are sent */
	unsigned left;
};

struct flooder {
	struct raw_host *admin;
	struct pour pours[QUEUES];
};

static struct nvme_tcp_cmd capsule_of(const union nvme_sqe *sqe, uint32_t len)
{
	struct nvme_tcp_cmd cmd = {
		.hdr = { .type = NVME_TCP_CMD,
			 .hlen = sizeof(cmd),
			 .pdo = sizeof(cmd),
			 .plen = cpu_to_le32(sizeof(cmd) + len) },
		.sqe = *sqe,
	};

	cmd.sqe.bytes[1] |= 0x40; /* SGL */
	cmd.sqe.common.sgl.length = cpu_to_le32(len);
	cmd.sqe.common.sgl.type = NVME_SGL_IN_CAPSULE;
	return cmd;
}

/* 64 MiB to copy; the list is 128 bytes of what the capsule brings. */
static void set_copy(struct pour *pour)
{
	const union nvme_sqe sqe = { .common = { .opcode = nvme_cmd_copy,
						 .nsid = cpu_to_le32(COPIED),
						 .cdw10 = cpu_to_le32(64 * MIB / BLOCK),
						 .cdw12 = cpu_to_le32(3) } };
	struct nvme_copy_range ranges[4] = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		ranges[i].slba = cpu_to_le64(i * 16 * MIB / BLOCK);
		ranges[i].nlb = cpu_to_le16(16 * MIB / BLOCK - 1);
	}
	pour->cmd = capsule_of(&sqe, LARGE);
	memcpy(pour->data, ranges, sizeof(ranges));
}

/* True: some of it went. */
static bool pour_some(struct pour *pour)
{
	struct iovec parts[2] = { { &pour->cmd, sizeof(pour->cmd) }, { pour->data, LARGE } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	size_t skip = pour->at;
	ssize_t sent;

	if (!pour->left)
		return false;
	for (int i = 0; i < 2; i++) {
		size_t n = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		parts[i].iov_base = (char *)parts[i].iov_base + n;
		parts[i].iov_len -= n;
		skip -= n;
	}
	sent = sendmsg(pour->raw->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0)
		return false;
	pour->at += (size_t)sent;
	if (pour->at == sizeof(pour->cmd) + LARGE) {
		pour->at = 0;
		pour->left--;
	}
	return true;
}

static void turn(unsigned n)
{
	while (n--)
		stepped_once();
}

/* Until the target takes no more of it, or all is there. */
static void pour_all(struct flooder *from)
{
	for (unsigned rest = 0; rest < 50; rest++) {
		for (unsigned q = 0; q < QUEUES; q++)
			while (pour_some(&from->pours[q]))
				rest = 0;
		turn(1);
	}
}

static struct flooder *flood_open(uint8_t source)
{
	struct flooder *from = calloc(1, sizeof(*from));
	uint16_t cntlid;

	stepped_source = source;
	from->admin = stepped_admin(STEPPED_NQN, FLOODER, source, &cntlid);
	for (unsigned q = 0; q < QUEUES; q++) {
		struct pour *pour = &from->pours[q];

		pour->raw = stepped_io(FLOODER, source, cntlid, (uint16_t)(1 + q));
		pour->left = COMMANDS;
		set_copy(pour);
	}
	stepped_source = 0;
	return from;
}

static void flood_close(struct flooder *from)
{
	for (unsigned q = 0; q < QUEUES; q++)
		raw_host_close(from->pours[q].raw);
	raw_host_close(from->admin);
	free(from);
}

static unsigned share_at(uint8_t source)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(0x7f000000u | source) };
	struct sockaddr_storage addr = { 0 };

	memcpy(&addr, &at, sizeof(at));
	return weft_addr_counts_index(&stepped_target->anonymous, &addr);
}

/* The next one that shares with nobody: neither with one before nor with the other host. */
static uint8_t next_source(uint8_t before)
{
	uint8_t source = before + 1;

	while (share_at(source) == share_at(before) || share_at(source) == share_at(1))
		source++;
	return source;
}

/* Two hosts at two addresses: one alone does not get all that is spare. */
static struct flooder *floods[2];

static void floods_begin(void)
{
	uint8_t source = 1;

	for (unsigned i = 0; i < 2; i++)
		floods[i] = flood_open(source = next_source(source));
	for (unsigned i = 0; i < 2; i++)
		pour_all(floods[i]);
	assert_int_equal(tcp_poll_group_of(group())->spare_chunks, TCP_SPARE_CHUNKS);
}

static void floods_end(void)
{
	for (unsigned i = 0; i < 2; i++)
		flood_close(floods[i]);
}

static void until_alone(void)
{
	for (unsigned turns = 0; connections(); turns++) {
		assert_true(turns < TURNS_MAX);
		turn(1);
	}
	assert_int_equal(chunks_in_use(), 0);
	assert_int_equal(tcp_poll_group_of(group())->spare_chunks, 0);
}

/* --- another host ----------------------------------------------------------------------------- */

static struct raw_host *other_admin, *other;

/* The floods go on meanwhile: nothing comes to rest. */
static uint16_t answer(struct raw_host *raw)
{
	for (unsigned turns = 0; raw->answered < raw->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		turn(1);
	}
	return le16_to_cpu(raw->last.status) >> 1;
}

static struct raw_host *connect_queue(uint16_t cntlid, uint16_t qid)
{
	const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, OTHER, 2, cntlid);
	struct raw_host *raw = raw_host_open();

	answer(raw);
	raw_host_connect_send(raw, &data, qid, 0);
	assert_int_equal(answer(raw), 0);
	return raw;
}

static void open_other(void)
{
	union nvme_sqe enable = { .property = { .opcode = NVME_FABRICS_OPCODE,
						.fctype = NVMF_PROPERTY_SET,
						.offset = cpu_to_le32(NVME_REG_CC),
						.value = cpu_to_le64(0x460001) } };
	uint16_t cntlid;

	other_admin = connect_queue(NVME_CNTLID_DYNAMIC, 0);
	cntlid = (uint16_t)le64_to_cpu(other_admin->last.result);
	raw_host_send(other_admin, &enable, NULL, 0);
	assert_int_equal(answer(other_admin), 0);
	other = connect_queue(cntlid, 1);
}

static void close_other(void)
{
	raw_host_close(other);
	raw_host_close(other_admin);
}

static void send_rw(uint8_t opcode, uint8_t fuse, uint32_t nsid, uint64_t slba, char *data)
{
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .flags = fuse,
				       .nsid = cpu_to_le32(nsid),
				       .slba = cpu_to_le64(slba),
				       .nlb = cpu_to_le16(LARGE / BLOCK - 1) } };

	raw_host_send(other, &sqe, data, LARGE);
}

static void assert_written(uint64_t slba, char byte)
{
	char want[LARGE];

	memset(want, byte, sizeof(want));
	send_rw(nvme_cmd_read, 0, OTHERS, slba, NULL);
	assert_int_equal(answer(other), 0);
	assert_memory_equal(other->data, want, sizeof(want));
}

/* More at once than a chunk holds. */
static void others_write(void)
{
	char data[LARGE];

	for (unsigned i = 0; i < 12; i++) {
		memset(data, (char)('a' + i), sizeof(data));
		send_rw(nvme_cmd_write, 0, OTHERS, i * LARGE / BLOCK, data);
	}
	assert_int_equal(answer(other), 0);
	for (unsigned i = 0; i < 12; i++)
		assert_written(i * LARGE / BLOCK, (char)('a' + i));
}

/* --- cases ------------------------------------------------------------------------------------ */

/* Its commands keep three quarters of the spare chunks, and its connections one each. */
static void a_share_has_a_limit(void **state)
{
	struct flooder *from = flood_open(next_source(1));

	pour_all(from);
	assert_in_range(chunks_in_use(), connections(), connections() + TCP_SPARE_CHUNKS / 4 * 3);
	assert_int_equal(tcp_poll_group_of(group())->spare_chunks, TCP_SPARE_CHUNKS / 4 * 3);
	flood_close(from);
	until_alone();
}

/* When all are kept: each connection has one, also one that comes then. */
static void others_receive_on(void **state)
{
	open_other();
	floods_begin();
	others_write();
	close_other();
	open_other();
	others_write();
	assert_int_equal(tcp_poll_group_of(group())->spare_chunks, TCP_SPARE_CHUNKS);
	floods_end();
	others_write();
	close_other();
	until_alone();
}

/* Commands that wait behind slow storage fill the chunk, and half of a pair, too; its other half
 * finds room when they have ended. */
static void a_pair_finds_room(void **state)
{
	char before[LARGE], after[LARGE];
	open_other();
	floods_begin();
	memset(before, 'b', sizeof(before));
	memset(after, 'c', sizeof(after));
	send_rw(nvme_cmd_write, 0, OTHERS, 0, before);
	assert_int_equal(answer(other), 0);
	send_rw(nvme_cmd_write, 0, SLOW, 0, after);
	send_rw(nvme_cmd_write, 0, SLOW, 0, after);
	send_rw(nvme_cmd_compare, NVME_FUSE_FIRST, OTHERS, 0, before);
	send_rw(nvme_cmd_write, NVME_FUSE_SECOND, OTHERS, 0, after);
	raw_host_delivered(other);
	turn(20);
	assert_int_equal(nkept, 2);
	assert_int_equal(other->sent - other->answered, 4);
	storage_answers();
	assert_int_equal(answer(other), 0);
	assert_written(0, 'c');
	floods_end();
	close_other();
	until_alone();
}

static struct tcp_conn *conn_of(const struct raw_host *raw)
{
	struct sockaddr_in here;
	struct weft_qpair *qp;
	socklen_t len = sizeof(here);

	assert_int_equal(getsockname(raw->fd, (struct sockaddr *)&here, &len), 0);
	weft_list_for_each(qp, &group()->qpairs, link)
		if (((struct sockaddr_in *)&qp->peer)->sin_port == here.sin_port)
			return tcp_conn_of(qp);
	fail();
	return NULL;
}

static void send_slow_writes(void)
{
	static char data[LARGE];

	for (unsigned i = 0; i < 6; i++)
		send_rw(nvme_cmd_write, 0, SLOW, 0, data);
}

static void send_copies(void)
{
	struct pour pour = { .raw = other, .left = 6 };

	set_copy(&pour);
	while (pour.left)
		assert_true(pour_some(&pour));
}

/* Since when the host owes the data of a write, behind which it sends what fills its chunk. */
static uint64_t owes_data_since(void (*send_more)(void))
{
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nsid = cpu_to_le32(OTHERS) } };
	struct weft_stall stall = { 0 };
	struct tcp_conn *conn;
	uint64_t since;

	open_other();
	other->stalls = true; /* it does not take the R2T */
	conn = conn_of(other);
	raw_host_send(other, &sqe, NULL, BLOCK);
	send_more();
	for (unsigned turns = 0; conn->rx_state != TCP_RX_WAITS_CHUNK; turns++) {
		assert_true(turns < TURNS_MAX);
		turn(1);
	}
	for (uint32_t i = 0; i < conn->qp.high_water; i++)
		if (weft_qpair_req(&conn->qp, i))
			weft_stall_look(&stall, weft_qpair_req(&conn->qp, i));
	since = conn->qp.transport->stalled_since(&conn->qp, &stall);
	close_other();
	return since;
}

/* A host that is not read from owes its data all the same, unless storage is the reason. */
static void only_storage_excuses(void **state)
{
	floods_begin();
	assert_int_equal(owes_data_since(send_slow_writes), 0);
	storage_answers();
	assert_int_not_equal(owes_data_since(send_copies), 0);
	floods_end();
	until_alone();
}

/* Before Connect there is one. */
static void strangers_have_one(void **state)
{
	const union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
						  .fctype = NVMF_CONNECT } };
	struct pour pour = { .raw = raw_host_open(), .left = COMMANDS };
	uint32_t len = TCP_ADMIN_CAPSULE_BYTES;

	answer(pour.raw);
	pour.cmd = capsule_of(&sqe, len);
	for (unsigned n = 0; n < 64; n++) {
		send(pour.raw->fd, &pour.cmd, sizeof(pour.cmd), MSG_DONTWAIT | MSG_NOSIGNAL);
		send(pour.raw->fd, pour.data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		turn(1);
		assert_in_range(chunks_in_use(), 0, connections());
	}
	raw_host_close(pour.raw);
	until_alone();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_has_a_limit), cmocka_unit_test(others_receive_on),
		cmocka_unit_test(a_pair_finds_room),   cmocka_unit_test(only_storage_excuses),
		cmocka_unit_test(strangers_have_one),
	};
	int rc;

	stepped_start();
	stepped_ns_add(COPIED, BLOCK, stepped_backend("mem:256M"));
	stepped_ns_add(OTHERS, BLOCK, stepped_backend("mem:1M"));
	stepped_ns_add(SLOW, BLOCK, open_slow());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
