#include "proto/tcp.h"

#include <errno.h>
#include <isa-l/crc.h>

/* What a host may send. */
static const struct {
	const char *name;
	uint8_t hlen;
	bool digests;
} rules_by_type[] = {
	[NVME_TCP_ICREQ] = { "ICReq", sizeof(struct nvme_tcp_icreq), false },
	[NVME_TCP_H2C_TERM] = { "H2CTermReq", sizeof(struct nvme_tcp_term), false },
	[NVME_TCP_CMD] = { "CapsuleCmd", sizeof(struct nvme_tcp_cmd), true },
	[NVME_TCP_H2C_DATA] = { "H2CData", sizeof(struct nvme_tcp_data), true },
};

static bool from_host(uint8_t type)
{
	return type < sizeof(rules_by_type) / sizeof(rules_by_type[0]) && rules_by_type[type].hlen;
}

const char *nvme_tcp_type_text(uint8_t type)
{
	return from_host(type) ? rules_by_type[type].name : "unknown PDU";
}

static int fault_set(struct nvme_tcp_fault *fault, uint16_t fes, uint32_t fei, const char *why)
{
	*fault = (struct nvme_tcp_fault){ .fes = fes, .fei = fei, .why = why };
	return -EPROTO;
}

#define BAD_FIELD(field, why) \
	fault_set(fault, NVME_TCP_FES_FIELD, offsetof(struct nvme_tcp_hdr, field), why)

/* PLEN of a PDU without data. */
static int check_plain(const struct nvme_tcp_hdr *hdr, uint32_t most, struct nvme_tcp_shape *shape,
		       struct nvme_tcp_fault *fault)
{
	uint32_t plen = le32_to_cpu(hdr->plen);

	if (plen < shape->header || plen > most)
		return BAD_FIELD(plen, "PLEN does not fit this type");
	shape->data_at = shape->header;
	shape->data_len = plen - shape->header;
	return 0;
}

/* PDO and PLEN of a PDU with data. */
static int check_data(const struct nvme_tcp_hdr *hdr, uint32_t data_max,
		      struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	uint32_t plen = le32_to_cpu(hdr->plen), tail = shape->ddgst ? NVME_TCP_DIGEST : 0;

	/* Our CPDA is 0: data starts at a multiple of 4. */
	if (hdr->pdo < shape->header || hdr->pdo % 4)
		return BAD_FIELD(pdo, "PDO is inside the header or not aligned");
	if (plen <= hdr->pdo + tail)
		return BAD_FIELD(plen, "PLEN leaves no room for data");
	shape->data_at = hdr->pdo;
	shape->data_len = plen - hdr->pdo - tail;
	if (shape->data_len > data_max)
		return fault_set(fault, NVME_TCP_FES_LIMIT, 0, "more data than one PDU may carry");
	return 0;
}

static int check_digest_flags(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
			      bool has_data, struct nvme_tcp_fault *fault)
{
	if (!!(hdr->flags & NVME_TCP_F_HDGST) != rules->hdgst)
		return BAD_FIELD(flags, "HDGSTF is not what was negotiated");
	if (has_data && !!(hdr->flags & NVME_TCP_F_DDGST) != rules->ddgst)
		return BAD_FIELD(flags, "DDGSTF is not what was negotiated");
	return 0;
}

int nvme_tcp_check_hdr(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
		       struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	uint32_t plen = le32_to_cpu(hdr->plen), header;
	bool has_data;
	int rc;

	if (!from_host(hdr->type))
		return BAD_FIELD(type, "a host does not send this type");
	if ((hdr->type == NVME_TCP_ICREQ) == rules->ready && hdr->type != NVME_TCP_H2C_TERM)
		return fault_set(fault, NVME_TCP_FES_SEQUENCE, 0,
				 rules->ready ? "second ICReq" : "PDU before ICReq");
	header = rules_by_type[hdr->type].hlen;
	if (rules_by_type[hdr->type].digests && rules->hdgst)
		header += NVME_TCP_DIGEST;
	has_data = hdr->type == NVME_TCP_H2C_DATA || (hdr->type == NVME_TCP_CMD && plen > header);
	if (rules_by_type[hdr->type].digests) {
		rc = check_digest_flags(hdr, rules, has_data, fault);
		if (rc < 0)
			return rc;
	}
	if (hdr->hlen != rules_by_type[hdr->type].hlen)
		return BAD_FIELD(hlen, "HLEN does not fit this type");

	*shape = (struct nvme_tcp_shape){ .header = header, .ddgst = has_data && rules->ddgst };
	if (has_data)
		return check_data(hdr,
				  hdr->type == NVME_TCP_CMD ? rules->capsule_data_max :
							      rules->h2c_data_max,
				  shape, fault);
	if (hdr->type == NVME_TCP_H2C_TERM)
		return check_plain(hdr, header + NVME_TCP_TERM_DATA_MAX, shape, fault);
	return check_plain(hdr, header, shape, fault);
}

int nvme_tcp_check_icreq(const struct nvme_tcp_icreq *icreq, struct nvme_tcp_fault *fault)
{
	if (icreq->pfv)
		return fault_set(fault, NVME_TCP_FES_UNSUPPORTED,
				 offsetof(struct nvme_tcp_icreq, pfv), "PFV is not 0");
	if (icreq->hpda > NVME_TCP_HPDA_MAX)
		return fault_set(fault, NVME_TCP_FES_FIELD, offsetof(struct nvme_tcp_icreq, hpda),
				 "HPDA is above 31");
	return 0;
}

uint32_t nvme_tcp_crc(uint32_t crc, const void *data, size_t len)
{
	return ~crc32_iscsi((unsigned char *)data, (int)len, ~crc);
}
