/* disk.c - a small target for one queue. */
#include "disk.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "digest.h"
#include "must.h"
#include "proto/tcp.h"

enum { IN_MAX = 256 << 10, MOODS_MAX = 64, H2C_MAX = 4096, PIECE = 700 };

uint8_t disk[DISK_BLOCKS][DISK_BLOCK];

static struct {
	enum mood mood;
	uint16_t status;
} moods[MOODS_MAX];
static unsigned nmoods, next_mood;

static int peer = -1;
static bool hdgst, ddgst, asked;
static char in[IN_MAX];
static size_t have;

/* Commands that are not answered yet. */
static struct cmd {
	bool open, held;
	union nvme_sqe sqe;
	enum mood mood;
	uint16_t status;
	uint32_t got;
	char data[DISK_BLOCKS * DISK_BLOCK];
} cmds[DISK_CIDS];

void disk_mood(enum mood mood, uint16_t status)
{
	if (nmoods == MOODS_MAX)
		return;
	moods[nmoods].mood = mood;
	moods[nmoods++].status = status;
}

void disk_forget(void)
{
	nmoods = next_mood = 0;
}

void disk_hang_up(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
}

void disk_accept(int fd, bool with_hdgst, bool with_ddgst)
{
	disk_hang_up();
	peer = fd;
	hdgst = with_hdgst;
	ddgst = with_ddgst;
	asked = false;
	have = 0;
	for (int i = 0; i < DISK_CIDS; i++)
		cmds[i].open = false;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The host's receive buffer holds all that its queue can ask for; what it does not take is its
 * own fault. */
static void say(const struct nvme_tcp_hdr *hdr, const void *data, uint32_t len, bool corrupt)
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
	if (peer >= 0 && send(peer, out, end, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)end)
		disk_hang_up();
}

static void respond(uint16_t cid, uint16_t status)
{
	struct nvme_tcp_resp pdu = { .hdr = { .type = NVME_TCP_RESP, .hlen = sizeof(pdu) } };

	pdu.cqe.cid = cpu_to_le16(cid);
	pdu.cqe.status = cpu_to_le16((uint16_t)(status << 1));
	say(&pdu.hdr, NULL, 0, false);
}

static void terminate(void)
{
	struct nvme_tcp_term pdu = { .hdr = { .type = NVME_TCP_C2H_TERM, .hlen = sizeof(pdu) } };

	pdu.fes = cpu_to_le16(NVME_TCP_FES_SEQUENCE);
	say(&pdu.hdr, NULL, 0, false);
}

static uint16_t cid_of(const struct cmd *c)
{
	return le16_to_cpu(c->sqe.common.cid);
}

static char *place(const struct cmd *c)
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

	say(&pdu.hdr, place(c) + at, len, corrupt);
}

static void read_out(const struct cmd *c, uint32_t len)
{
	uint32_t at = 0, piece = c->mood == MOOD_PIECES ? PIECE : len, end = len;
	bool flag = c->mood == MOOD_SUCCESS_FLAG;

	if (c->mood == MOOD_SHORT)
		end = len / 2;
	for (; at < end; at += piece) {
		piece = piece < end - at ? piece : end - at;
		send_data(c, at, piece,
			  at + piece < len ? 0 : NVME_TCP_F_LAST | (flag ? NVME_TCP_F_SUCCESS : 0),
			  c->mood == MOOD_CORRUPT);
	}
	if (!flag)
		respond(cid_of(c), 0);
}

/* The command, with its data if it brings any. */
static void carry_out(struct cmd *c)
{
	uint32_t len = le32_to_cpu(c->sqe.common.sgl.length);

	c->open = false;
	switch (c->sqe.common.opcode) {
	case nvme_cmd_read:
		read_out(c, len);
		return;
	case nvme_cmd_write:
		memcpy(place(c), c->data, len);
		break;
	case nvme_cmd_write_zeroes:
		memset(place(c), 0, (le16_to_cpu(c->sqe.rw.nlb) + 1u) * DISK_BLOCK);
		break;
	}
	respond(cid_of(c), 0);
}

static void ask_for(const struct cmd *c, uint32_t len)
{
	struct nvme_tcp_data pdu = { .hdr = { .type = NVME_TCP_R2T, .hlen = sizeof(pdu) },
				     .cccid = c->sqe.common.cid,
				     .datal = cpu_to_le32(len) };

	say(&pdu.hdr, NULL, 0, false);
}

static bool brings_data(const struct cmd *c)
{
	return nvme_cmd_direction(&c->sqe) == NVME_DIR_TO_CTRL;
}

static void treat(struct cmd *c)
{
	switch (c->mood) {
	case MOOD_REFUSE:
		c->open = false;
		respond(cid_of(c), c->status & 0x7ff ? c->status : c->status | NVME_SC_INTERNAL);
		return;
	case MOOD_BUSY:
		c->open = false;
		respond(cid_of(c), NVME_SC_CMD_INTERRUPTED);
		return;
	case MOOD_HOLD:
		c->held = true;
		return;
	case MOOD_SHORT:
		if (!brings_data(c) || c->got)
			break;
		c->open = false; /* "written", without its data */
		respond(cid_of(c), 0);
		return;
	case MOOD_HANG_UP:
		if (c->status & 1 && c->got)
			carry_out(c);
		disk_hang_up();
		return;
	case MOOD_WRONG_CID:
		respond((uint16_t)(cid_of(c) + 1 + c->status * 16), 0);
		return;
	case MOOD_TERMINATE:
		terminate();
		return;
	default:
		break;
	}
	if (brings_data(c) && !c->got)
		ask_for(c, le32_to_cpu(c->sqe.common.sgl.length));
	else
		carry_out(c);
}

void disk_release(void)
{
	for (int i = 0; i < DISK_CIDS; i++) {
		if (!cmds[i].open || !cmds[i].held)
			continue;
		cmds[i].held = false;
		cmds[i].mood = MOOD_GOOD;
		treat(&cmds[i]);
	}
}

/* --- what comes ------------------------------------------------------------------------------- */

static struct cmd *find(uint16_t cid)
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

static void on_cmd(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct cmd *c = new_cmd();
	struct nvme_tcp_cmd cmd;

	must(c); /* no more than the queue is deep */
	memcpy(&cmd, pdu, sizeof(cmd));
	must(!find(le16_to_cpu(cmd.sqe.common.cid)));
	c->open = true;
	c->held = false;
	c->sqe = cmd.sqe;
	c->got = shape->data_len;
	c->mood = next_mood < nmoods ? moods[next_mood].mood : MOOD_GOOD;
	c->status = next_mood < nmoods ? moods[next_mood++].status : 0;
	memcpy(c->data, pdu + shape->data_at, shape->data_len);
	if (cmd.sqe.common.opcode != NVME_FABRICS_OPCODE && cmd.sqe.common.opcode) {
		uint64_t blocks = le16_to_cpu(cmd.sqe.rw.nlb) + UINT64_C(1);

		must(le64_to_cpu(cmd.sqe.rw.slba) + blocks <= DISK_BLOCKS);
		must(cmd.sqe.common.opcode == nvme_cmd_write_zeroes ||
		     le32_to_cpu(cmd.sqe.common.sgl.length) == blocks * DISK_BLOCK);
	}
	treat(c);
}

static void on_h2c(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_data data;
	struct cmd *c;

	memcpy(&data, pdu, sizeof(data));
	c = find(le16_to_cpu(data.cccid));
	if (!c)
		return;
	must(le32_to_cpu(data.datao) == c->got);
	memcpy(c->data + c->got, pdu + shape->data_at, shape->data_len);
	c->got += shape->data_len;
	must(c->got <= le32_to_cpu(c->sqe.common.sgl.length));
	if (c->got == le32_to_cpu(c->sqe.common.sgl.length))
		carry_out(c);
}

static void on_icreq(void)
{
	struct nvme_tcp_icresp pdu = { .hdr = { .type = NVME_TCP_ICRESP, .hlen = sizeof(pdu) },
				       .dgst = (uint8_t)(hdgst | ddgst << 1),
				       .maxh2cdata = cpu_to_le32(H2C_MAX) };

	asked = true;
	say(&pdu.hdr, NULL, 0, false);
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

bool disk_serve(void)
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
