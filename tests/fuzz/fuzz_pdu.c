/* fuzz_pdu.c - the check of a PDU's header: whatever it accepts can be received.
 *
 *   input: 1 byte of rules, 4 capsule limit, 4 H2C limit, then a header (or a whole ICReq, ICResp) */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "must.h"
#include "proto/tcp.h"

enum { RULES_READY = 1, RULES_HDGST = 2, RULES_DDGST = 4, RULES_HOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What may come to a controller, and to a host. */
static const uint8_t hlens[2][16] = {
	{
		[NVME_TCP_ICREQ] = sizeof(struct nvme_tcp_icreq),
		[NVME_TCP_H2C_TERM] = sizeof(struct nvme_tcp_term),
		[NVME_TCP_CMD] = sizeof(struct nvme_tcp_cmd),
		[NVME_TCP_H2C_DATA] = sizeof(struct nvme_tcp_data),
	},
	{
		[NVME_TCP_ICRESP] = sizeof(struct nvme_tcp_icresp),
		[NVME_TCP_C2H_TERM] = sizeof(struct nvme_tcp_term),
		[NVME_TCP_RESP] = sizeof(struct nvme_tcp_resp),
		[NVME_TCP_C2H_DATA] = sizeof(struct nvme_tcp_data),
		[NVME_TCP_R2T] = sizeof(struct nvme_tcp_data),
	},
};

static bool is_setup(uint8_t type)
{
	return type == NVME_TCP_ICREQ || type == NVME_TCP_ICRESP;
}

static bool is_term(uint8_t type)
{
	return type == NVME_TCP_H2C_TERM || type == NVME_TCP_C2H_TERM;
}

static bool has_digests(uint8_t type)
{
	return !is_setup(type) && !is_term(type);
}

static uint32_t data_max(uint8_t type, const struct nvme_tcp_rules *rules)
{
	switch (type) {
	case NVME_TCP_CMD:
		return rules->capsule_data_max;
	case NVME_TCP_H2C_DATA:
		return rules->h2c_data_max;
	case NVME_TCP_H2C_TERM:
	case NVME_TCP_C2H_TERM:
		return NVME_TCP_TERM_DATA_MAX;
	case NVME_TCP_C2H_DATA:
		return UINT32_MAX;
	default:
		return 0;
	}
}

static void check_flags(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
			const struct nvme_tcp_shape *shape)
{
	must(!!(hdr->flags & NVME_TCP_F_HDGST) == rules->hdgst);
	must(shape->ddgst == (rules->ddgst && shape->data_len));
	if (shape->data_len)
		must(!!(hdr->flags & NVME_TCP_F_DDGST) == rules->ddgst);
}

static void check_accepted(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules,
			   const struct nvme_tcp_shape *shape)
{
	bool hdgst = rules->hdgst && has_digests(hdr->type);

	must(hdr->type < sizeof(hlens[0]) && hlens[rules->host][hdr->type]);
	must(hdr->hlen == hlens[rules->host][hdr->type]);
	must(is_term(hdr->type) || is_setup(hdr->type) == !rules->ready);
	must(shape->header == hdr->hlen + (hdgst ? NVME_TCP_DIGEST : 0));
	must(shape->data_at >= shape->header && shape->data_at <= UINT8_MAX);
	must(shape->data_at % 4 == 0);
	must((uint64_t)shape->data_at + shape->data_len + (shape->ddgst ? NVME_TCP_DIGEST : 0) ==
	     le32_to_cpu(hdr->plen));
	must(shape->data_len <= data_max(hdr->type, rules));
	must(hdr->type != NVME_TCP_H2C_DATA || shape->data_len);
	must(hdr->type != NVME_TCP_C2H_DATA || shape->data_len);
	if (has_digests(hdr->type))
		check_flags(hdr, rules, shape);
	else
		must(!shape->ddgst);
}

static void check_refused(int rc, const struct nvme_tcp_fault *fault, size_t header)
{
	must(rc == -EPROTO && fault->why);
	must(fault->fes >= NVME_TCP_FES_FIELD && fault->fes <= NVME_TCP_FES_UNSUPPORTED);
	must(fault->fei < header);
}

static void one_header(const struct nvme_tcp_hdr *hdr, const struct nvme_tcp_rules *rules)
{
	struct nvme_tcp_fault fault = { 0 };
	struct nvme_tcp_shape shape = { 0 };
	int rc = nvme_tcp_check_hdr(hdr, rules, &shape, &fault);

	must(nvme_tcp_type_text(hdr->type));
	if (rc)
		check_refused(rc, &fault, sizeof(*hdr));
	else
		check_accepted(hdr, rules, &shape);
}

static void one_icreq(const struct nvme_tcp_icreq *icreq)
{
	struct nvme_tcp_fault fault = { 0 };
	int rc = nvme_tcp_check_icreq(icreq, &fault);

	if (rc)
		check_refused(rc, &fault, sizeof(*icreq));
	else
		must(!icreq->pfv && icreq->hpda <= NVME_TCP_HPDA_MAX);
}

static void one_icresp(const struct nvme_tcp_icresp *icresp)
{
	struct nvme_tcp_fault fault = { 0 };
	int rc = nvme_tcp_check_icresp(icresp, &fault);

	if (rc)
		check_refused(rc, &fault, sizeof(*icresp));
	else
		must(!icresp->pfv && icresp->cpda <= NVME_TCP_HPDA_MAX &&
		     le32_to_cpu(icresp->maxh2cdata) >= NVME_TCP_H2C_DATA_MIN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nvme_tcp_rules rules = { 0 };
	struct nvme_tcp_icresp icresp;
	struct nvme_tcp_icreq icreq;
	const size_t at = 9;

	if (size < at + sizeof(icreq.hdr))
		return 0;
	rules.host = data[0] & RULES_HOST;
	rules.ready = data[0] & RULES_READY;
	rules.hdgst = rules.ready && data[0] & RULES_HDGST;
	rules.ddgst = rules.ready && data[0] & RULES_DDGST;
	memcpy(&rules.capsule_data_max, data + 1, 4);
	memcpy(&rules.h2c_data_max, data + 5, 4);
	memcpy(&icreq.hdr, data + at, sizeof(icreq.hdr));
	one_header(&icreq.hdr, &rules);
	if (size < at + sizeof(icreq))
		return 0;
	memcpy(&icreq, data + at, sizeof(icreq));
	memcpy(&icresp, data + at, sizeof(icresp));
	one_icreq(&icreq);
	one_icresp(&icresp);
	return 0;
}
