/* mini_target.c - a small target for one queue. */
#include "peer/mini_target.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "must.h"
#include "peer/digest.h"
#include "proto/tcp.h"

enum { IN_MAX = 256 << 10, REACTIONS_MAX = 64, H2C_MAX = 4096, PIECE = 700 };

uint8_t disk[DISK_BLOCKS][DISK_BLOCK];
unsigned mini_target_writes[DISK_BLOCKS];
bool mini_target_lied;

static struct {
	enum reaction reaction;
	uint16_t status;
} reactions[REACTIONS_MAX];
static unsigned nreactions, next_reaction;

static int peer = -1;
static bool hdgst, ddgst, asked;
static char in[IN_MAX];
static size_t have;
static bool silent; /* it does not answer */

/* Commands that are not answered yet. */
static struct cmd {
	bool open, held;
	union nvme_sqe sqe;
	enum reaction reaction;
	uint16_t status;
	uint32_t got;
	struct cmd *mate; /* the other half, if it is here */
	char data[DISK_BLOCKS * DISK_BLOCK];
} cmds[DISK_CIDS];
static struct cmd *half; /* of a pair whose second half comes next */

void mini_target_react(enum reaction reaction, uint16_t status)
{
	if (nreactions == REACTIONS_MAX)
		return;
	reactions[nreactions].reaction = reaction;
	reactions[nreactions++].status = status;
}

void mini_target_forget(void)
{
	nreactions = next_reaction = 0;
}

void mini_target_hang_up(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
}

void mini_target_accept(int fd, bool with_hdgst, bool with_ddgst)
{
	mini_target_hang_up();
	peer = fd;
	hdgst = with_hdgst;
	ddgst = with_ddgst;
	asked = false;
	have = 0;
	half = NULL;
	for (int i = 0; i < DISK_CIDS; i++)
		cmds[i].open = false;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The host's receive buffer holds all that its queue can ask for; what it does not take is its
 * own fault. */
static void send_pdu(const struct nvme_tcp_hdr *hdr, const void *data, uint32_t len, bool corrupt)
{
	static char out[DISK_BLOCKS * DISK_BLOCK + 256];
	bool h = hdgst && hdr->type != NVME_TCP_ICRESP && hdr->type != NVME_TCP_C2H_TERM;
	uint32_t header = hdr->hlen + (h ? 4 : 0), end = header + len;
	struct nvme_tcp_hdr *common = (struct nvme_tcp_hdr *)out;

	memcpy(out, hdr, hdr->hlen);
	if (len)
		memcpy(out + header, data, len);
	common->flags |= (h ? NVME_TCP_F_HDGST : 0) | (len && ddgst ? NVME_TCP_F_DDGST : 0);
	common->pdo = len ? (uint8_t)header : 0;
	if (len && ddgst)
		seal(out + end, data, len);
	if (len && ddgst && corrupt)
		out[header] ^= 1;
	end += len && ddgst ? 4 : 0;
	common->plen = cpu_to_le32(end);
	if (h)
		seal(out + hdr->hlen, out, hdr->hlen);
	if (peer >= 0 && !silent &&
	    send(peer, out, end, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)end)
		mini_target_hang_up();
}

static void respond(uint16_t cid, uint16_t status)
{
	struct nvme_tcp_resp pdu = { .hdr = { .type = NVME_TCP_RESP, .hlen = sizeof(pdu) } };

	pdu.cqe.cid = cpu_to_le16(cid);
	pdu.cqe.status = cpu_to_le16((uint16_t)(status << 1));
	send_pdu(&pdu.hdr, NULL, 0, false);
}

static void terminate(void)
{
	struct nvme_tcp_term pdu = { .hdr = { .type = NVME_TCP_C2H_TERM, .hlen = sizeof(pdu) } };

	pdu.fes = cpu_to_le16(NVME_TCP_FES_SEQUENCE);
	send_pdu(&pdu.hdr, NULL, 0, false);
}

static uint16_t cid_of(const struct cmd *c)
{
	return le16_to_cpu(c->sqe.common.cid);
}

static char *block_data(const struct cmd *c)
{
	return (char *)disk[le64_to_cpu(c->sqe.rw.slba)];
}

static void send_data(const struct cmd *c, uint32_t at, uint32_t len, uint8_t flags, bool corrupt)
{
	struct nvme_tcp_data pdu = {
		.hdr = { .type = NVME_TCP_C2H_DATA, .flags = flags, .hlen = sizeof(pdu) },
		.cccid = c->sqe.common.cid,
		.datao = cpu_to_le32(at),
		.datal = cpu_to_le32(len),
	};

	send_pdu(&pdu.hdr, block_data(c) + at, len, corrupt);
}

static void read_out(const struct cmd *c, uint32_t len)
{
	uint32_t at = 0, piece = c->reaction == REACT_PIECES ? PIECE : len, end = len;
	bool flag = c->reaction == REACT_SUCCESS_FLAG;

	if (c->reaction == REACT_SHORT)
		end = len / 2;
	for (; at < end; at += piece) {
		piece = piece < end - at ? piece : end - at;
		send_data(c, at, piece,
			  at + piece < len ? 0 : NVME_TCP_F_LAST | (flag ? NVME_TCP_F_SUCCESS : 0),
			  c->reaction == REACT_CORRUPT);
	}
	if (!flag)
		respond(cid_of(c), 0);
}

/* --- what must not be done twice -------------------------------------------------------------- */

static bool host_has_left(void)
{
	struct pollfd look = { .fd = peer };

	return peer < 0 || (poll(&look, 1, 0) > 0 && look.revents & POLLHUP);
}

static void count_write(const struct cmd *c, uint32_t blocks)
{
	uint64_t at = le64_to_cpu(c->sqe.rw.slba);

	for (uint32_t i = 0; i < blocks; i++)
		mini_target_writes[at + i]++;
}

static uint32_t blocks_of(const struct cmd *c)
{
	return le16_to_cpu(c->sqe.rw.nlb) + 1u;
}

static void copy(const struct cmd *c)
{
	struct nvme_copy_range range;
	uint32_t blocks;

	memcpy(&range, c->data, sizeof(range));
	blocks = le16_to_cpu(range.nlb) + 1u;
	must(le64_to_cpu(range.slba) + blocks <= DISK_BLOCKS);
	must(le64_to_cpu(c->sqe.rw.slba) + blocks <= DISK_BLOCKS);
	memmove(block_data(c), disk[le64_to_cpu(range.slba)], blocks * DISK_BLOCK);
	count_write(c, blocks);
}

static bool is_equal(const struct cmd *c)
{
	return !memcmp(block_data(c), c->data, blocks_of(c) * DISK_BLOCK);
}

/* Both halves are here. */
static void carry_out_pair(struct cmd *first, struct cmd *second)
{
	bool equal = is_equal(first);

	first->open = second->open = false;
	if (host_has_left())
		return;
	if (equal) {
		memcpy(block_data(second), second->data, blocks_of(second) * DISK_BLOCK);
		count_write(second, blocks_of(second));
	}
	respond(cid_of(first), equal ? 0 : NVME_SC_COMPARE_FAILED);
	respond(cid_of(second), equal ? 0 : NVME_SC_FUSED_FAIL);
}

/* --- commands --------------------------------------------------------------------------------- */

static void trim(const struct cmd *c)
{
	struct nvme_dsm_range range;

	memcpy(&range, c->data, sizeof(range));
	must(le64_to_cpu(range.slba) + le32_to_cpu(range.nlb) <= DISK_BLOCKS);
	memset(disk[le64_to_cpu(range.slba)], 0, le32_to_cpu(range.nlb) * (size_t)DISK_BLOCK);
}

/* The command, with its data if it brings any. */
static void carry_out(struct cmd *c)
{
	uint32_t len = le32_to_cpu(c->sqe.common.sgl.length);

	if (c->mate) {
		carry_out_pair(c->mate, c);
		return;
	}
	c->open = false;
	switch (c->sqe.common.opcode) {
	case nvme_cmd_read:
		read_out(c, len);
		return;
	case nvme_cmd_write:
		memcpy(block_data(c), c->data, len);
		break;
	case nvme_cmd_write_zeroes:
		memset(block_data(c), 0, blocks_of(c) * DISK_BLOCK);
		break;
	case nvme_cmd_dsm:
		trim(c);
		break;
	case nvme_cmd_copy:
		if (host_has_left())
			return;
		copy(c);
		break;
	case nvme_cmd_compare:
		respond(cid_of(c), is_equal(c) ? 0 : NVME_SC_COMPARE_FAILED);
		return;
	}
	respond(cid_of(c), 0);
}

static void ask_for(const struct cmd *c, uint32_t len)
{
	struct nvme_tcp_data pdu = { .hdr = { .type = NVME_TCP_R2T, .hlen = sizeof(pdu) },
				     .cccid = c->sqe.common.cid,
				     .datal = cpu_to_le32(len) };

	send_pdu(&pdu.hdr, NULL, 0, false);
}

static bool brings_data(const struct cmd *c)
{
	return nvme_cmd_direction(&c->sqe) == NVME_DIR_TO_CTRL;
}

static bool is_first_half(const struct cmd *c)
{
	return (c->sqe.common.flags & NVME_FUSE_MASK) == NVME_FUSE_FIRST;
}

static bool has_data(const struct cmd *c)
{
	return !brings_data(c) || c->got == le32_to_cpu(c->sqe.common.sgl.length);
}

/* All of its data has come. A first half waits for the second, whose mood is the pair's. */
static void execute(struct cmd *c)
{
	if (is_first_half(c))
		c = c->mate;
	if (!c || c->held || !has_data(c) || (c->mate && !has_data(c->mate)))
		return;
	silent = c->reaction == REACT_HANG_UP;
	carry_out(c);
	if (silent)
		mini_target_hang_up();
	silent = false;
}

static void refuse(struct cmd *c, uint16_t status)
{
	c->open = false;
	if (c->mate) {
		c->mate->open = false;
		respond(cid_of(c->mate), status);
		status = NVME_SC_FUSED_FAIL;
	}
	respond(cid_of(c), status);
}

static void react_to(struct cmd *c)
{
	switch (c->reaction) {
	case REACT_REFUSE:
		refuse(c, c->status & 0x7ff ? c->status : c->status | NVME_SC_INTERNAL);
		return;
	case REACT_BUSY:
		refuse(c, NVME_SC_CMD_INTERRUPTED);
		return;
	case REACT_HOLD:
		c->held = true;
		return;
	case REACT_SHORT:
		if (!brings_data(c) || c->got)
			break;
		c->open = false; /* "written", without its data */
		if (c->mate) {
			c->mate->open = false;
			respond(cid_of(c->mate), 0);
		}
		respond(cid_of(c), 0);
		return;
	case REACT_HANG_UP:
		if (c->status & 1)
			break;
		mini_target_hang_up();
		return;
	case REACT_WRONG_CID: /* the host may have just sent a command that is called so */
		mini_target_lied = true;
		respond((uint16_t)(cid_of(c) + 1 + c->status * 16), 0);
		return;
	case REACT_TERMINATE:
		terminate();
		return;
	default:
		break;
	}
	if (brings_data(c) && !c->got)
		ask_for(c, le32_to_cpu(c->sqe.common.sgl.length));
	else
		execute(c);
}

void mini_target_release(void)
{
	for (int i = 0; i < DISK_CIDS; i++) {
		if (!cmds[i].open || !cmds[i].held)
			continue;
		cmds[i].held = false;
		cmds[i].reaction = REACT_GOOD;
		react_to(&cmds[i]);
	}
}

/* --- what comes ------------------------------------------------------------------------------- */

static struct cmd *find_cmd(uint16_t cid)
{
	for (int i = 0; i < DISK_CIDS; i++)
		if (cmds[i].open && cid_of(&cmds[i]) == cid)
			return &cmds[i];
	return NULL;
}

static struct cmd *new_cmd(void)
{
	for (int i = 0; i < DISK_CIDS; i++)
		if (!cmds[i].open)
			return &cmds[i];
	return NULL;
}

static void check_range(const union nvme_sqe *sqe)
{
	uint64_t blocks = le16_to_cpu(sqe->rw.nlb) + UINT64_C(1);
	uint32_t len = le32_to_cpu(sqe->common.sgl.length);

	switch (sqe->common.opcode) {
	case nvme_cmd_read:
	case nvme_cmd_write:
	case nvme_cmd_compare:
		must(len == blocks * DISK_BLOCK);
		must(le64_to_cpu(sqe->rw.slba) + blocks <= DISK_BLOCKS);
		break;
	case nvme_cmd_write_zeroes:
	case nvme_cmd_verify:
		must(le64_to_cpu(sqe->rw.slba) + blocks <= DISK_BLOCKS);
		break;
	case nvme_cmd_dsm:
		must(len == sizeof(struct nvme_dsm_range));
		break;
	case nvme_cmd_copy:
		must(len == sizeof(struct nvme_copy_range));
		break;
	}
}

/* The two halves follow each other. */
static void pair_up(struct cmd *c)
{
	bool second = (c->sqe.common.flags & NVME_FUSE_MASK) == NVME_FUSE_SECOND;

	must(second == (half != NULL));
	c->mate = half;
	if (half)
		half->mate = c;
	half = is_first_half(c) ? c : NULL;
}

static void on_cmd(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct cmd *c = new_cmd();
	struct nvme_tcp_cmd cmd;

	must(c); /* no more than the queue is deep */
	memcpy(&cmd, pdu, sizeof(cmd));
	must(!find_cmd(le16_to_cpu(cmd.sqe.common.cid)));
	c->open = true;
	c->held = false;
	c->sqe = cmd.sqe;
	c->got = shape->data_len;
	c->reaction = REACT_GOOD;
	c->status = 0;
	memcpy(c->data, pdu + shape->data_at, shape->data_len);
	check_range(&cmd.sqe);
	pair_up(c);
	if (!is_first_half(c) && next_reaction < nreactions) {
		c->reaction = reactions[next_reaction].reaction;
		c->status = reactions[next_reaction++].status;
	}
	react_to(c);
}

static void on_h2c(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_data data;
	struct cmd *c;

	memcpy(&data, pdu, sizeof(data));
	c = find_cmd(le16_to_cpu(data.cccid));
	if (!c)
		return;
	must(le32_to_cpu(data.datao) == c->got);
	memcpy(c->data + c->got, pdu + shape->data_at, shape->data_len);
	c->got += shape->data_len;
	must(c->got <= le32_to_cpu(c->sqe.common.sgl.length));
	if (c->got == le32_to_cpu(c->sqe.common.sgl.length))
		execute(c);
}

static void on_icreq(void)
{
	struct nvme_tcp_icresp pdu = { .hdr = { .type = NVME_TCP_ICRESP, .hlen = sizeof(pdu) },
				       .dgst = (uint8_t)(hdgst | ddgst << 1),
				       .maxh2cdata = cpu_to_le32(H2C_MAX) };

	asked = true;
	send_pdu(&pdu.hdr, NULL, 0, false);
}

static uint32_t hear_pdu(const char *pdu, size_t left)
{
	const struct nvme_tcp_rules rules = { .ready = asked,
					      .hdgst = asked && hdgst,
					      .ddgst = asked && ddgst,
					      .capsule_data_max = 8192,
					      .h2c_data_max = H2C_MAX };
	struct nvme_tcp_fault fault;
	struct nvme_tcp_shape shape;
	struct nvme_tcp_hdr hdr;

	if (left < sizeof(hdr))
		return 0;
	memcpy(&hdr, pdu, sizeof(hdr));
	must(!nvme_tcp_check_hdr(&hdr, &rules, &shape, &fault));
	if (left < le32_to_cpu(hdr.plen))
		return 0;
	if (hdr.type == NVME_TCP_ICREQ)
		on_icreq();
	else if (hdr.type == NVME_TCP_CMD)
		on_cmd(pdu, &shape);
	else if (hdr.type == NVME_TCP_H2C_DATA)
		on_h2c(pdu, &shape);
	return le32_to_cpu(hdr.plen);
}

bool mini_target_serve(void)
{
	size_t at = 0;
	uint32_t len;
	ssize_t n;

	if (peer < 0)
		return false;
	n = recv(peer, in + have, sizeof(in) - have, MSG_DONTWAIT);
	if (n <= 0)
		return false;
	have += (size_t)n;
	while (peer >= 0 && (len = hear_pdu(in + at, have - at)))
		at += len;
	have -= at;
	memmove(in, in + at, have);
	return true;
}
