/* nvme.h - commands and completions as they travel, beside what <nvme/types.h> has. */
#ifndef WEFT_PROTO_NVME_H
#define WEFT_PROTO_NVME_H

#include <assert.h>
#include <endian.h>
#include <linux/types.h>
#include <nvme/types.h>
#include <stdint.h>

#ifdef __CHECKER__
#define __force_cast __attribute__((force))
#else
#define __force_cast
#endif

static inline uint16_t le16_to_cpu(__le16 v)
{
	return le16toh((__force_cast uint16_t)v);
}
static inline uint32_t le32_to_cpu(__le32 v)
{
	return le32toh((__force_cast uint32_t)v);
}
static inline uint64_t le64_to_cpu(__le64 v)
{
	return le64toh((__force_cast uint64_t)v);
}
static inline __le16 cpu_to_le16(uint16_t v)
{
	return (__force_cast __le16)htole16(v);
}
static inline __le32 cpu_to_le32(uint32_t v)
{
	return (__force_cast __le32)htole32(v);
}
static inline __le64 cpu_to_le64(uint64_t v)
{
	return (__force_cast __le64)htole64(v);
}

/* NVMe base 2.0, 4.1.2: Scatter Gather List descriptors. */
struct nvme_sgl {
	__le64 addr;
	__le32 length;
	__u8 rsvd[3];
	__u8 type; /* type << 4 | subtype */
};
static_assert(sizeof(struct nvme_sgl) == 16, "SGL descriptor");

enum {
	NVME_SGL_IN_CAPSULE = 0x01, /* data block, address is an offset into the capsule */
	NVME_SGL_TRANSPORT = 0x5a,  /* transport data block: the transport knows where */
	NVME_SGL_LAST_IN_CAPSULE =
		0x31,          /* the only segment of a list, at an offset into the capsule */
	NVME_SGL_KEYED = 0x40, /* keyed data block: memory of the host, by its key */
	NVME_SGL_KEYED_INVALIDATE =
		0x4f, /* the same; the key is to be invalidated with the answer */
};

struct nvme_keyed_sgl {
	__le64 addr;
	__u8 length[3];
	__u8 key[4];
	__u8 type;
};
static_assert(sizeof(struct nvme_keyed_sgl) == 16, "keyed SGL descriptor");

static inline uint32_t nvme_keyed_sgl_length(const struct nvme_keyed_sgl *sgl)
{
	return sgl->length[0] | (uint32_t)sgl->length[1] << 8 | (uint32_t)sgl->length[2] << 16;
}

static inline uint32_t nvme_keyed_sgl_key(const struct nvme_keyed_sgl *sgl)
{
	return sgl->key[0] | (uint32_t)sgl->key[1] << 8 | (uint32_t)sgl->key[2] << 16 |
	       (uint32_t)sgl->key[3] << 24;
}

static inline void nvme_keyed_sgl_set(struct nvme_keyed_sgl *sgl, uint64_t addr, uint32_t length,
				      uint32_t key)
{
	*sgl = (struct nvme_keyed_sgl){
		.addr = cpu_to_le64(addr),
		.length = { (__u8)length, (__u8)(length >> 8), (__u8)(length >> 16) },
		.key = { (__u8)key, (__u8)(key >> 8), (__u8)(key >> 16), (__u8)(key >> 24) },
		.type = NVME_SGL_KEYED,
	};
}

struct nvme_cmd {
	__u8 opcode;
	__u8 flags; /* FUSE 1:0, PSDT 7:6 */
	__le16 cid;
	__le32 nsid;
	__le32 cdw2, cdw3;
	__le64 mptr;
	struct nvme_sgl sgl;
	__le32 cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
};

struct nvme_rw_cmd {
	__u8 opcode, flags;
	__le16 cid;
	__le32 nsid, cdw2, cdw3;
	__le64 mptr;
	struct nvme_sgl sgl;
	__le64 slba;
	__le16 nlb;
	__le16 control; /* PRINFO 13:10, FUA 14 */
	__le32 cdw13, cdw14, cdw15;
};

struct nvmf_connect_cmd {
	__u8 opcode, rsvd1;
	__le16 cid;
	__u8 fctype, rsvd5[19];
	struct nvme_sgl sgl;
	__le16 recfmt;
	__le16 qid;
	__le16 sqsize;
	__u8 cattr, rsvd47;
	__le32 kato;
	__u8 rsvd52[12];
};

struct nvmf_property_cmd {
	__u8 opcode, rsvd1;
	__le16 cid;
	__u8 fctype, rsvd5[35];
	__u8 attrib, rsvd41[3];
	__le32 offset;
	__le64 value;
	__u8 rsvd56[8];
};

/* Cross-Controller Reset (NVMe base 2.3, 5.4.3), newer than <nvme/types.h>: a host asks one
 * controller to end another one of its own, and to say when nothing of it is left. */
struct nvme_ccr_cmd {
	__u8 opcode, flags;
	__le16 cid;
	__le32 nsid, cdw2, cdw3;
	__le64 mptr;
	struct nvme_sgl sgl;
	__le16 icid; /* the controller to reset */
	__u8 ciu, rsvd43;
	__le32 cdw11;
	__le64 cirn;
	__le32 cdw14, cdw15;
};

/* Get LBA Status for allocated blocks (NVM command set 1.1, 4.2.1), newer than <nvme/types.h>. */
struct nvme_lba_status_cmd {
	__u8 opcode, flags;
	__le16 cid;
	__le32 nsid, cdw2, cdw3;
	__le64 mptr;
	struct nvme_sgl sgl;
	__le64 slba;
	__le32 mndw; /* dwords of data, at most; 0's based */
	__le16 rl;   /* blocks; 0: to the end of the namespace */
	__u8 rsvd54, atype;
	__le32 cdw14, cdw15;
};
static_assert(sizeof(struct nvme_lba_status_cmd) == 64, "Get LBA Status command");

union nvme_sqe {
	struct nvme_cmd common;
	struct nvme_ccr_cmd ccr;
	struct nvme_rw_cmd rw;
	struct nvme_lba_status_cmd lba_status;
	struct nvmf_connect_cmd connect;
	struct nvmf_property_cmd property;
	__u8 bytes[64];
};
static_assert(sizeof(struct nvme_cmd) == 64, "command");
static_assert(sizeof(struct nvme_rw_cmd) == 64, "read/write command");
static_assert(sizeof(struct nvmf_connect_cmd) == 64, "Connect command");
static_assert(sizeof(struct nvmf_property_cmd) == 64, "Property command");

struct nvme_cqe {
	__le64 result;
	__le16 sqhd;
	__le16 sqid;
	__le16 cid;
	__le16 status; /* status << 1 */
};
static_assert(sizeof(struct nvme_cqe) == 16, "completion");

enum {
	NVME_FABRICS_OPCODE = 0x7f,
	NVMF_PROPERTY_SET = 0x00,
	NVMF_CONNECT = 0x01,
	NVMF_PROPERTY_GET = 0x04,
	NVMF_DISCONNECT = 0x08,
};

enum {
	NVMF_CATTR_NO_SQ_FLOW = 1 << 2,
	NVME_RW_FUA = 1 << 14,
	NVME_RW_LR = 1 << 15,
	NVME_RW_PRINFO = 0xf << 10,
	NVME_WZ_DEAC = 1 << 9,
	NVME_FUSE_MASK = 3,
	NVME_FUSE_FIRST = 1,
	NVME_FUSE_SECOND = 2,
	NVME_PSDT_SGL = 1 << 6,
};

#define NVME_NSID_BROADCAST 0xffffffffu
#define NVME_CNTLID_DYNAMIC 0xffff
#define NVME_CNTLID_MAX     0xffef
#define NVME_NQN_DISCOVERY  "nqn.2014-08.org.nvmexpress.discovery"

/* Cross-Controller Reset, continued. */
enum {
	NVME_ADMIN_CROSS_CTRL_RESET = 0x38,
	NVME_CCR_IRS = 1, /* dword 0 of its completion: the reset is over */

	NVME_SC_CCR_IN_PROGRESS = 0x3f, /* command specific */
	NVME_SC_CCR_LOG_FULL = 0x40,
	NVME_SC_CCR_LIMIT = 0x41,

	NVME_LOG_LID_CCR = 0x1e,
	NVME_LOG_CCR_RMC = 1,         /* LSP: remove what is completed */
	NVME_AER_NOTICE_CCR = 0xf4,   /* a reset is completed */
	NVME_CTRL_OAES_CCR = 1 << 20, /* and bit of Asynchronous Event Configuration */

	/* Bytes of Identify Controller. */
	NVME_ID_CTRL_CIU = 135,   /* the controller's instance, 1 to 255 … */
	NVME_ID_CTRL_CIRN = 136,  /* … and 64 random bits of it */
	NVME_ID_CTRL_CQT = 386,   /* 16 bits: Command Quiesce Time, ms */
	NVME_ID_CTRL_CCRL = 1807, /* resets at a time */
};

enum nvme_ccr_status { NVME_CCR_IN_PROGRESS, NVME_CCR_SUCCESS, NVME_CCR_FAILED };

struct nvme_ccr_entry {
	__le16 icid;
	__u8 ciu, rsvd3;
	__le16 acid; /* a controller to try instead; FFFFh: none */
	__u8 ccrs;   /* enum nvme_ccr_status */
	__u8 ccrf;   /* bit 0: validated, bit 1: the reset was begun */
};

struct nvme_ccr_log {
	__le16 ne;
	__u8 rsvd2[6];
	struct nvme_ccr_entry entries[];
};
static_assert(sizeof(struct nvme_ccr_cmd) == 64, "Cross-Controller Reset command");
static_assert(sizeof(struct nvme_ccr_entry) == 8, "Cross-Controller Reset entry");

/* Get LBA Status, continued. */
enum {
	NVME_LBA_STATUS_ALLOCATED = 0x02, /* ATYPE: the blocks that are allocated */

	NVME_CMPC_INCOMPLETE = 1, /* there may be more behind the last descriptor */
	NVME_CMPC_COMPLETE = 2,

	NVME_LBARS_ALLOCATED = 2, /* a descriptor's status: one of its blocks is, at least */

	/* A byte of Identify Controller, NVM command set, and its bit. */
	NVME_ID_CTRL_NVM_AOCS = 18,
	NVME_AOCS_RALBAS = 1, /* it takes that ATYPE */
};

/* Which way a command's data goes: the opcode's low bits say it (NVMe base 2.0, figure 87). */
enum nvme_direction { NVME_DIR_NONE, NVME_DIR_TO_CTRL, NVME_DIR_TO_HOST, NVME_DIR_BOTH };

static inline enum nvme_direction nvme_cmd_direction(const union nvme_sqe *sqe)
{
	if (sqe->common.opcode == NVME_FABRICS_OPCODE)
		return sqe->connect.fctype & 3;
	return sqe->common.opcode & 3;
}

/* What others than its handler have to know of an I/O command. A new command has its line here. */
enum nvme_io_trait {
	NVME_IO_SLBA = 1 << 0,   /* dwords 10 and 11 are its first block */
	NVME_IO_READS = 1 << 1,  /* it leaves the data alone */
	NVME_IO_BLOCKS = 1 << 2, /* its host sends the blocks */
	NVME_IO_LIST = 1 << 3,   /* its host sends a list of ranges */
};

static inline unsigned nvme_io_traits(uint8_t opcode)
{
	switch (opcode) {
	case nvme_cmd_read:
	case nvme_cmd_verify:
		return NVME_IO_SLBA | NVME_IO_READS;
	case nvme_cmd_compare:
		return NVME_IO_SLBA | NVME_IO_READS | NVME_IO_BLOCKS;
	case nvme_cmd_write:
		return NVME_IO_SLBA | NVME_IO_BLOCKS;
	case nvme_cmd_write_zeroes:
		return NVME_IO_SLBA;
	case nvme_cmd_dsm:
	case nvme_cmd_copy:
		return NVME_IO_LIST;
	default:
		return 0;
	}
}

#endif
