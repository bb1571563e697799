/* tcp.h - the PDUs of NVMe/TCP and what makes one acceptable (NVMe/TCP transport 1.0).
 *
 *   ┌ hdr 8 ┬ PDU specific ┬ HDGST 4? ┬ PAD ┬ DATA ┬ DDGST 4? ┐
 *   └───────┴──────────────┴──────────┴─────┴──────┴──────────┘
 *   0       8             HLEN             PDO             PLEN                                */
#ifndef WEFT_PROTO_TCP_H
#define WEFT_PROTO_TCP_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/nvme.h"

enum nvme_tcp_type {
	NVME_TCP_ICREQ = 0x00,
	NVME_TCP_ICRESP = 0x01,
	NVME_TCP_H2C_TERM = 0x02,
	NVME_TCP_C2H_TERM = 0x03,
	NVME_TCP_CMD = 0x04,
	NVME_TCP_RESP = 0x05,
	NVME_TCP_H2C_DATA = 0x06,
	NVME_TCP_C2H_DATA = 0x07,
	NVME_TCP_R2T = 0x09,
};

enum {
	NVME_TCP_F_HDGST = 1 << 0,
	NVME_TCP_F_DDGST = 1 << 1,
	NVME_TCP_F_LAST = 1 << 2,
	NVME_TCP_F_SUCCESS = 1 << 3,
};

enum {
	NVME_TCP_DIGEST = 4,          /* bytes of a digest */
	NVME_TCP_HPDA_MAX = 31,       /* CPDA as well */
	NVME_TCP_H2C_DATA_MIN = 4096, /* the least MAXH2CDATA */
	NVME_TCP_TERM_DATA_MAX = 128,
	NVME_TCP_DGST_HDR = 1 << 0, /* ICReq, ICResp: DGST */
	NVME_TCP_DGST_DATA = 1 << 1,
};

/* Fatal Error Status of a termination request. */
enum nvme_tcp_fes {
	NVME_TCP_FES_FIELD = 1, /* invalid PDU header field; FEI: its offset */
	NVME_TCP_FES_SEQUENCE = 2,
	NVME_TCP_FES_HDGST = 3,       /* FEI: the digest received */
	NVME_TCP_FES_RANGE = 4,       /* data transfer out of range */
	NVME_TCP_FES_LIMIT = 5,       /* data transfer limit exceeded */
	NVME_TCP_FES_UNSUPPORTED = 6, /* unsupported parameter; FEI: its offset */
};

struct nvme_tcp_hdr {
	__u8 type, flags, hlen, pdo;
	__le32 plen;
};

struct nvme_tcp_icreq {
	struct nvme_tcp_hdr hdr;
	__le16 pfv;
	__u8 hpda, dgst;
	__le32 maxr2t;
	__u8 rsvd[112];
};

struct nvme_tcp_icresp {
	struct nvme_tcp_hdr hdr;
	__le16 pfv;
	__u8 cpda, dgst;
	__le32 maxh2cdata;
	__u8 rsvd[112];
};

struct nvme_tcp_term {
	struct nvme_tcp_hdr hdr;
	__le16 fes;
	__le16 feil, feiu;
	__u8 rsvd[10];
};

struct nvme_tcp_cmd {
	struct nvme_tcp_hdr hdr;
	union nvme_sqe sqe;
};

struct nvme_tcp_resp {
	struct nvme_tcp_hdr hdr;
	struct nvme_cqe cqe;
};

/* H2CData, C2HData (no ttag) and R2T share a shape. */
struct nvme_tcp_data {
	struct nvme_tcp_hdr hdr;
	__le16 cccid;
	__le16 ttag;
	__le32 datao;
	__le32 datal;
	__u8 rsvd[4];
};

static_assert(sizeof(struct nvme_tcp_hdr) == 8, "common header");
static_assert(sizeof(struct nvme_tcp_icreq) == 128, "ICReq");
static_assert(sizeof(struct nvme_tcp_icresp) == 128, "ICResp");
static_assert(sizeof(struct nvme_tcp_term) == 24, "H2CTermReq, C2HTermReq");
static_assert(sizeof(struct nvme_tcp_cmd) == 72, "CapsuleCmd");
static_assert(sizeof(struct nvme_tcp_resp) == 24, "CapsuleResp");
static_assert(sizeof(struct nvme_tcp_data) == 24, "H2CData, C2HData, R2T");

/* What this connection agreed on. */
struct nvme_tcp_rules {
	bool ready; /* ICReq was answered */
	bool hdgst, ddgst;
	uint32_t capsule_data_max; /* in-capsule bytes */
	uint32_t h2c_data_max;     /* MAXH2CDATA */
	bool host;                 /* we are the host: PDUs come from a controller */
};

/* Why a PDU is refused, in the words of a termination request and in ours. */
struct nvme_tcp_fault {
	uint16_t fes;
	uint32_t fei;
	const char *why;
};

/* Fills @fault; returns -EPROTO. */
int nvme_tcp_refuse(struct nvme_tcp_fault *fault, uint16_t fes, uint32_t fei, const char *why);

/* Where the parts of an accepted PDU lie. */
struct nvme_tcp_shape {
	uint32_t header;  /* bytes of header, with its digest */
	uint32_t data_at; /* PDO, or the end of the header */
	uint32_t data_len;
	bool ddgst; /* a data digest follows the data */
};

/* Checks the common header of a PDU from the other side, in wire order. Everything that it accepts
 * can be received: the shape is consistent with PLEN. -EPROTO with @fault filled otherwise. */
int nvme_tcp_check_hdr(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
		       struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault);
/* Bytes of a header that its digest follows, as far as type, HLEN and HDGSTF say so; 0: none does. A
 * header that is refused may have been damaged on its way, and then the digest is what is wrong. */
uint32_t nvme_tcp_digested_header(const struct nvme_tcp_hdr *hdr,
				  const struct nvme_tcp_rules *rules);
int nvme_tcp_check_icreq(const struct nvme_tcp_icreq *icreq, struct nvme_tcp_fault *fault);
int nvme_tcp_check_icresp(const struct nvme_tcp_icresp *icresp, struct nvme_tcp_fault *fault);

/* Data of such a PDU belongs into memory of its command: a receiver handles the header first. */
static inline bool nvme_tcp_data_is_apart(uint8_t type)
{
	return type == NVME_TCP_H2C_DATA || type == NVME_TCP_C2H_DATA;
}

bool nvme_tcp_type_is_known(uint8_t type);
const char *nvme_tcp_type_text(uint8_t type);
const char *nvme_tcp_fes_text(uint16_t fes);

/* CRC32C as digests use it; start with 0, feed the result back in to go on. */
uint32_t nvme_tcp_crc(uint32_t crc, const void *data, size_t len);
/* Copies, and returns the CRC of the copy: others may write to @from meanwhile. */
uint32_t nvme_tcp_crc_copy(void *to, const void *from, size_t len);

#endif
