/* record.c - the record of a reservation in the store: encode and decode.
 *
 *  ┌ head: format, type, counts, generation, session │ registrants, 32 each │ notices, 24 each ┐ */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/nvme.h"
#include "store/store.h"
#include "target/resv/state.h"

enum { FORMAT = 1 };

struct record_head {
	__u8 format, rtype, ptpl, zero;
	__le32 generation;
	__le64 session, noticed;
	__le32 nregs, nnotices;
};
static_assert(sizeof(struct record_head) == 32, "head of a reservation");

struct record_reg {
	__u8 host[RESV_HOST_BYTES];
	__le64 key;
	__u8 holder;
	__u8 name[RESV_NAME_BYTES]; /* 0: written by a target that knows no names */
};
static_assert(sizeof(struct record_reg) == 32, "a registrant");

struct record_notice {
	__u8 host[RESV_HOST_BYTES];
	__u8 type, abort, zero[6];
};
static_assert(sizeof(struct record_notice) == 24, "a notice");
static_assert(sizeof(struct record_head) + RESV_REGS_MAX * sizeof(struct record_reg) +
			      RESV_NOTICES_MAX * sizeof(struct record_notice) <=
		      WEFT_STORE_VALUE_MAX,
	      "the largest fits");

size_t resv_record_size(const struct resv_state *st)
{
	assert(st->nregs <= RESV_REGS_MAX && st->nnotices <= RESV_NOTICES_MAX);
	return sizeof(struct record_head) + st->nregs * sizeof(struct record_reg) +
	       st->nnotices * sizeof(struct record_notice);
}

void resv_record_encode(const struct resv_state *st, uint64_t session, void *bytes)
{
	struct record_head head = {
		.format = FORMAT,
		.rtype = st->rtype,
		.ptpl = st->ptpl,
		.generation = cpu_to_le32(st->generation),
		.session = cpu_to_le64(session),
		.noticed = cpu_to_le64(st->noticed),
		.nregs = cpu_to_le32(st->nregs),
		.nnotices = cpu_to_le32(st->nnotices),
	};
	char *at = mempcpy(bytes, &head, sizeof(head));

	for (unsigned i = 0; i < st->nregs; i++) {
		struct record_reg reg = { .key = cpu_to_le64(st->regs[i].key),
					  .holder = st->regs[i].holder };

		memcpy(reg.host, st->regs[i].host, sizeof(reg.host));
		memcpy(reg.name, st->regs[i].name, sizeof(reg.name));
		at = mempcpy(at, &reg, sizeof(reg));
	}
	for (unsigned i = 0; i < st->nnotices; i++) {
		struct record_notice notice = { .type = st->notices[i].type,
						.abort = st->notices[i].abort };

		memcpy(notice.host, st->notices[i].host, sizeof(notice.host));
		at = mempcpy(at, &notice, sizeof(notice));
	}
}

static void decode_lists(struct resv_state *st, const char *at)
{
	struct record_notice notice;
	struct record_reg reg;

	for (unsigned i = 0; i < st->nregs; i++, at += sizeof(reg)) {
		memcpy(&reg, at, sizeof(reg));
		memcpy(st->regs[i].host, reg.host, sizeof(reg.host));
		memcpy(st->regs[i].name, reg.name, sizeof(reg.name));
		st->regs[i].key = le64_to_cpu(reg.key);
		st->regs[i].holder = reg.holder;
	}
	for (unsigned i = 0; i < st->nnotices; i++, at += sizeof(notice)) {
		memcpy(&notice, at, sizeof(notice));
		memcpy(st->notices[i].host, notice.host, sizeof(notice.host));
		st->notices[i].type = notice.type;
		st->notices[i].abort = notice.abort;
	}
}

/* Keeps nothing but the number of notices. */
static void drop_nonpersistent(struct resv_state *st)
{
	*st = (struct resv_state){ .noticed = st->noticed };
}

int resv_record_decode(struct resv_state *st, uint64_t session, const void *bytes, size_t len)
{
	struct record_head head;

	memset(st, 0, sizeof(*st));
	if (!len)
		return 0;
	if (len < sizeof(head))
		return -EINVAL;
	memcpy(&head, bytes, sizeof(head));
	st->rtype = head.rtype;
	st->ptpl = head.ptpl;
	st->generation = le32_to_cpu(head.generation);
	st->noticed = le64_to_cpu(head.noticed);
	st->nregs = le32_to_cpu(head.nregs);
	st->nnotices = le32_to_cpu(head.nnotices);
	if (head.format != FORMAT || st->rtype > NVME_RESERVATION_RTYPE_EAAR ||
	    st->nregs > RESV_REGS_MAX || st->nnotices > RESV_NOTICES_MAX ||
	    len != resv_record_size(st))
		return -EINVAL;
	decode_lists(st, (const char *)bytes + sizeof(head));
	if (!st->ptpl && le64_to_cpu(head.session) != session)
		drop_nonpersistent(st);
	return 0;
}
