/* wire.h - as much of NVMe/TCP as the load generator says and hears.
 *
 * On purpose not the target's own headers: two readings of the specification check each other. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <assert.h>
#include <endian.h>
#include <linux/types.h>

enum pdu_type {
	PDU_ICREQ = 0,
	PDU_ICRESP = 1,
	PDU_C2H_TERM = 3,
	PDU_CMD = 4,
	PDU_RSP = 5,
	PDU_H2C_DATA = 6,
	PDU_C2H_DATA = 7,
	PDU_R2T = 9,
};

enum { PDU_LAST = 1 << 2, PDU_SUCCESS = 1 << 3 };

struct pdu_hdr {
	__u8 type, flags, hlen, pdo;
	__le32 plen;
};

struct pdu_icreq {
	struct pdu_hdr hdr;
	__le16 pfv;
	__u8 hpda, dgst;
	__le32 maxr2t;
	__u8 rsvd[112];
};
static_assert(sizeof(struct pdu_icreq) == 128, "ICReq");

struct pdu_icresp {
	struct pdu_hdr hdr;
	__le16 pfv;
	__u8 cpda, dgst;
	__le32 maxh2cdata;
	__u8 rsvd[112];
};
static_assert(sizeof(struct pdu_icresp) == 128, "ICResp");

/* R2T, H2CData and C2HData share their layout. */
struct pdu_data {
	struct pdu_hdr hdr;
	__le16 cid, ttag;
	__le32 offset, length;
	__u8 rsvd[4];
};
static_assert(sizeof(struct pdu_data) == 24, "data");

struct sqe {
	__u8 opcode, flags;
	__le16 cid;
	union {
		__le32 nsid;
		__u8 fctype;
	};
	__u8 rsvd[16];
	struct {
		__le64 address;
		__le32 length;
		__u8 rsvd[3], type;
	} sgl;
	union {
		__le32 cdw[6]; /* CDW10 to 15 */
		struct {
			__le16 recfmt, qid, sqsize;
			__u8 cattr, rsvd;
			__le32 kato;
		} connect;
		struct {
			__u8 attrib, rsvd[3];
			__le32 offset;
			__le64 value;
		} property;
	};
};
static_assert(sizeof(struct sqe) == 64, "SQE");

struct pdu_cmd {
	struct pdu_hdr hdr;
	struct sqe sqe;
};
static_assert(sizeof(struct pdu_cmd) == 72, "CapsuleCmd");

struct pdu_rsp {
	struct pdu_hdr hdr;
	__le64 result;
	__le16 sqhd, sqid, cid, status;
};
static_assert(sizeof(struct pdu_rsp) == 24, "CapsuleResp");

struct connect_data {
	__u8 hostid[16];
	__le16 cntlid;
	__u8 rsvd[238];
	char subnqn[256], hostnqn[256];
	__u8 rsvd2[256];
};
static_assert(sizeof(struct connect_data) == 1024, "Connect data");

enum {
	OP_WRITE = 0x01,
	OP_READ = 0x02,
	OP_IDENTIFY = 0x06,
	OP_SET_FEATURES = 0x09,
	OP_FABRICS = 0x7f,
	FCTYPE_PROPERTY_SET = 0x00,
	FCTYPE_CONNECT = 0x01,
	FCTYPE_PROPERTY_GET = 0x04,
	FLAG_SGL = 0x40, /* PSDT: SGLs, as fabrics demand */
	SGL_IN_CAPSULE = 0x01,
	SGL_TRANSPORT = 0x5a,
	CATTR_NO_SQ_FLOW = 1 << 2,
	PROPERTY_CAP = 0x00,
	PROPERTY_CC = 0x14,
	PROPERTY_CSTS = 0x1c,
	FEATURE_QUEUES = 0x07,
	IDENTIFY_BYTES = 4096,
	ID_CTRL_MDTS = 77,
	ID_CTRL_IOCCSZ = 1792,
};

#endif
