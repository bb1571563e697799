/* tcp.c - checks the header of an NVMe/TCP PDU, and computes digests (CRC32C). */
#include "proto/tcp.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>

enum { CRC_COPY_BYTES = 8 << 10 }; /* a part whose CRC is computed while it is in the L1 cache */

enum pdu_phase {
	SETUP,   /* once, before all others */
	RUNNING, /* after set-up */
	ANY_TIME,
};

enum pdu_data {
	NO_DATA,
	MAY_HAVE_DATA,
	HAS_DATA,
	HAS_HEADER_AT_FAULT,
};

/* What each side may send. */
static const struct pdu_type {
	const char *name;
	uint8_t hlen;
	bool digests, from_host;
	uint8_t phase, data;
} types[] = {
	[NVME_TCP_ICREQ] = { "ICReq", sizeof(struct nvme_tcp_icreq), false, true, SETUP },
	[NVME_TCP_ICRESP] = { "ICResp", sizeof(struct nvme_tcp_icresp), false, false, SETUP },
	[NVME_TCP_H2C_TERM] = { "H2CTermReq", sizeof(struct nvme_tcp_term), false, true, ANY_TIME,
				HAS_HEADER_AT_FAULT },
	[NVME_TCP_C2H_TERM] = { "C2HTermReq", sizeof(struct nvme_tcp_term), false, false, ANY_TIME,
				HAS_HEADER_AT_FAULT },
	[NVME_TCP_CMD] = { "CapsuleCmd", sizeof(struct nvme_tcp_cmd), true, true, RUNNING,
			   MAY_HAVE_DATA },
	[NVME_TCP_RESP] = { "CapsuleResp", sizeof(struct nvme_tcp_resp), true, false, RUNNING },
	[NVME_TCP_H2C_DATA] = { "H2CData", sizeof(struct nvme_tcp_data), true, true, RUNNING,
				HAS_DATA },
	[NVME_TCP_C2H_DATA] = { "C2HData", sizeof(struct nvme_tcp_data), true, false, RUNNING,
				HAS_DATA },
	[NVME_TCP_R2T] = { "R2T", sizeof(struct nvme_tcp_data), true, false, RUNNING },
};

/* NULL: there is no such type. */
static const struct pdu_type *known_type(uint8_t type)
{
	return type < sizeof(types) / sizeof(types[0]) && types[type].hlen ? &types[type] : NULL;
}

bool nvme_tcp_type_is_known(uint8_t type)
{
	return known_type(type);
}

const char *nvme_tcp_type_text(uint8_t type)
{
	const struct pdu_type *known = known_type(type);

	return known ? known->name : "unknown PDU";
}

const char *nvme_tcp_fes_text(uint16_t fes)
{
	static const char *const texts[] = {
		[NVME_TCP_FES_FIELD] = "invalid PDU header field",
		[NVME_TCP_FES_SEQUENCE] = "PDU sequence error",
		[NVME_TCP_FES_HDGST] = "header digest error",
		[NVME_TCP_FES_RANGE] = "data transfer out of range",
		[NVME_TCP_FES_LIMIT] = "data transfer limit exceeded",
		[NVME_TCP_FES_UNSUPPORTED] = "unsupported parameter",
	};

	return fes && fes < sizeof(texts) / sizeof(texts[0]) ? texts[fes] : "unknown reason";
}

int nvme_tcp_refuse(struct nvme_tcp_fault *fault, uint16_t fes, uint32_t fei, const char *why)
{
	*fault = (struct nvme_tcp_fault){ .fes = fes, .fei = fei, .why = why };
	return -EPROTO;
}

#define BAD_FIELD(field, why) \
	nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD, offsetof(struct nvme_tcp_hdr, field), why)

/* Set-up comes first, once. */
static int refuse_sequence(const struct nvme_tcp_rules *rules, struct nvme_tcp_fault *fault)
{
	return nvme_tcp_refuse(fault, NVME_TCP_FES_SEQUENCE, 0,
			       rules->ready ? "the connection is set up already" :
					      "the connection is not set up yet");
}

/* PLEN of a PDU without data; the header at fault follows a termination request. */
static int check_no_data(const struct nvme_tcp_hdr *hdr, enum pdu_data data,
			 struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	uint32_t plen = le32_to_cpu(hdr->plen);
	uint32_t more = data == HAS_HEADER_AT_FAULT ? NVME_TCP_TERM_DATA_MAX : 0;

	if (plen < shape->header || plen > shape->header + more)
		return BAD_FIELD(plen, "PLEN does not fit this type");
	shape->data_at = shape->header;
	shape->data_len = plen - shape->header;
	return 0;
}

static uint32_t data_max(uint8_t type, const struct nvme_tcp_rules *rules)
{
	if (rules->host) /* it knows how much it asked for, per command */
		return UINT32_MAX;
	return type == NVME_TCP_CMD ? rules->capsule_data_max : rules->h2c_data_max;
}

/* PDO and PLEN of a PDU with data. */
static int check_data(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
		      struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	uint32_t plen = le32_to_cpu(hdr->plen), tail = rules->ddgst ? NVME_TCP_DIGEST : 0;

	/* Our CPDA, and our HPDA, is 0: data starts at a multiple of 4. */
	if (hdr->pdo < shape->header || hdr->pdo % 4)
		return BAD_FIELD(pdo, "PDO is inside the header or not aligned");
	if (plen <= hdr->pdo + tail)
		return BAD_FIELD(plen, "PLEN leaves no room for data");
	shape->ddgst = rules->ddgst;
	shape->data_at = hdr->pdo;
	shape->data_len = plen - hdr->pdo - tail;
	if (shape->data_len > data_max(hdr->type, rules))
		return nvme_tcp_refuse(fault, NVME_TCP_FES_LIMIT, 0,
				       "more data than one PDU may carry");
	return 0;
}

int nvme_tcp_check_hdr(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
		       struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	const struct pdu_type *type = known_type(hdr->type);
	bool data;

	if (!type || type->from_host == rules->host)
		return BAD_FIELD(type, "this side does not send such a PDU");
	if (type->phase != (rules->ready ? RUNNING : SETUP) && type->phase != ANY_TIME)
		return refuse_sequence(rules, fault);
	shape->header = type->hlen + (type->digests && rules->hdgst ? NVME_TCP_DIGEST : 0);
	shape->ddgst = false;
	data = type->data == HAS_DATA ||
	       (type->data == MAY_HAVE_DATA && le32_to_cpu(hdr->plen) > shape->header);
	if (type->digests && !!(hdr->flags & NVME_TCP_F_HDGST) != rules->hdgst)
		return BAD_FIELD(flags, "HDGSTF is not what was negotiated");
	if (data && !!(hdr->flags & NVME_TCP_F_DDGST) != rules->ddgst)
		return BAD_FIELD(flags, "DDGSTF is not what was negotiated");
	if (hdr->hlen != type->hlen)
		return BAD_FIELD(hlen, "HLEN does not fit this type");
	return data ? check_data(hdr, rules, shape, fault) :
		      check_no_data(hdr, type->data, shape, fault);
}

uint32_t nvme_tcp_digested_header(const struct nvme_tcp_hdr *hdr,
				  const struct nvme_tcp_rules *rules)
{
	const struct pdu_type *type = known_type(hdr->type);

	if (!rules->hdgst || !type || !type->digests || type->from_host == rules->host)
		return 0;
	return hdr->hlen == type->hlen && hdr->flags & NVME_TCP_F_HDGST ? hdr->hlen : 0;
}

int nvme_tcp_check_icreq(const struct nvme_tcp_icreq *icreq, struct nvme_tcp_fault *fault)
{
	if (icreq->pfv)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_UNSUPPORTED,
				       offsetof(struct nvme_tcp_icreq, pfv), "PFV is not 0");
	if (icreq->hpda > NVME_TCP_HPDA_MAX)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_icreq, hpda), "HPDA is above 31");
	return 0;
}

int nvme_tcp_check_icresp(const struct nvme_tcp_icresp *icresp, struct nvme_tcp_fault *fault)
{
	if (icresp->pfv)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_UNSUPPORTED,
				       offsetof(struct nvme_tcp_icresp, pfv), "PFV is not 0");
	if (icresp->cpda > NVME_TCP_HPDA_MAX)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_icresp, cpda), "CPDA is above 31");
	if (le32_to_cpu(icresp->maxh2cdata) < NVME_TCP_H2C_DATA_MIN)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_icresp, maxh2cdata),
				       "MAXH2CDATA is below 4096");
	return 0;
}

uint32_t nvme_tcp_crc(uint32_t crc, const void *data, size_t len)
{
	return ~crc32_iscsi((unsigned char *)data, (int)len, ~crc);
}

/* memmove() is the library's; for a memcpy() this small the compiler emits code that is slower. */
uint32_t nvme_tcp_crc_copy(void *to, const void *from, size_t len)
{
	uint32_t crc = 0;

	for (size_t at = 0; at < len; at += CRC_COPY_BYTES) {
		size_t n = len - at < CRC_COPY_BYTES ? len - at : CRC_COPY_BYTES;

		memmove((char *)to + at, (const char *)from + at, n);
		crc = nvme_tcp_crc(crc, (char *)to + at, n);
	}
	return crc;
}
