/* fuzz_state.c - what a state file may hold: whatever is accepted can be acted by, and written
 * again.
 *
 *   input: 1 byte for what it is, then its bytes
 *
 * The file is everybody's who may write to it, and a disk's. Of a slot, the checksum is made right:
 * otherwise nothing else would ever be looked at. */
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "must.h"
#include "store/copies.h"
#include "target/cluster/owners.h"
#include "target/cluster/ports.h"
#include "target/cluster/remote_ccr.h"
#include "target/resv/resv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- records ---------------------------------------------------------------------------------- */

static void check_records(struct store_records *records)
{
	size_t size = store_records_size(records), again;
	char *bytes = malloc(size + 1), *other;
	struct store_records *back = store_records_new(UINT64_MAX, 1, 1);

	must(bytes && back);
	store_records_encode(records, bytes);
	must(store_records_decode(back, bytes, size) == 0);
	again = store_records_size(back);
	must(again == size);
	other = malloc(size + 1);
	must(other);
	store_records_encode(back, other);
	must(!memcmp(bytes, other, size));
	store_records_free(back);
	free(bytes);
	free(other);
}

static void try_records(const uint8_t *data, size_t size)
{
	struct store_records *records = store_records_new(UINT64_MAX, 1, 1);

	must(records);
	if (store_records_decode(records, data, size) == 0)
		check_records(records);
	store_records_free(records);
}

/* A head of 40 bytes; its checksum is behind the magic, and of all that follows. */
static void try_slots(const uint8_t *data, size_t size)
{
	uint8_t slot[4096] = "weftslot";
	struct store_records *records;
	uint64_t length;
	uint32_t crc;
	bool have;
	int fd;

	if (size < 29 || size > sizeof(slot) - 12)
		return;
	fd = memfd_create("state", MFD_CLOEXEC);
	must(fd >= 0 && store_copies_init(fd) == 0);
	memcpy(slot + 12, data + 1, size - 1);
	memcpy(&length, slot + 32, sizeof(length));
	if (length <= sizeof(slot) - 40) {
		crc = crc32_iscsi(slot + 12, (int)(28 + length), ~0u);
		memcpy(slot + 8, &crc, sizeof(crc));
	}
	must(pwrite(fd, slot, sizeof(slot),
		    STORE_COPIES_AT + (data[0] & 1 ? STORE_COPY_BYTES : 0)) == sizeof(slot));
	if (store_copies_load(fd, 0, &records) == 0 && records) {
		must(store_copies_have(fd, records->revision, &have) == 0 && have);
		check_records(records);
		must(store_copies_rewrite(fd, records) == 0);
		store_records_free(records);
	}
	close(fd);
}

/* --- reservations ----------------------------------------------------------------------------- */

static void run_all(const struct resv_state *st)
{
	static struct resv_state now;
	struct resv_view *view;
	bool changed;

	must(tgt_resv_view_new(st, &view) == 0);
	if (view)
		tgt_resv_view_allows(view, st->regs[0].host, nvme_cmd_write);
	free(view);
	if (!st->nregs || !resv_has_notice_room(st))
		return;
	for (unsigned i = 0; i < 3 * 3 * 2; i++) {
		struct resv_request rq = { .kind = i % 3,
					   .action = (uint8_t)(i / 3 % 3),
					   .rtype = NVME_RESERVATION_RTYPE_EARO,
					   .crkey = st->regs[0].key,
					   .key = i / 9 ? st->regs[st->nregs - 1].key : 0 };

		now = *st;
		memcpy(rq.host, st->regs[0].host, sizeof(rq.host));
		resv_execute(&now, &rq, &changed);
		must(now.nregs <= RESV_REGS_MAX && now.nnotices <= RESV_NOTICES_MAX);
	}
}

static void try_reservation(const uint8_t *data, size_t size)
{
	static char bytes[WEFT_STORE_VALUE_MAX];
	static struct resv_state st, back;

	if (resv_record_decode(&st, 1, data, size) < 0)
		return;
	must(resv_record_size(&st) <= sizeof(bytes));
	resv_record_encode(&st, 1, bytes);
	must(resv_record_decode(&back, 1, bytes, resv_record_size(&st)) == 0);
	run_all(&st);
}

/* --- what members tell each other ------------------------------------------------------------- */

static bool nothing_left(void *arg, uint32_t group, unsigned node)
{
	return false;
}

static void try_owners(const uint8_t *data, size_t size)
{
	const struct owners_view view = { .self = 2, .nodes = 3, .alive = 6 };
	bool not_ours[WEFT_ANA_GROUP_MAX];
	struct owners o, before;
	unsigned waits;

	if (owners_decode(&o, data, size) < 0)
		return;
	before = o;
	owners_advance(&o, &view, nothing_left, NULL, &waits);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		must(before.owner[i] != 3 || o.owner[i] == 3); /* it lives */
	owners_not_ours(&o, &view, not_ours);
}

static void try_ports(const uint8_t *data, size_t size)
{
	static struct ports ports, back;
	char bytes[PORTS_RECORD_MAX];
	size_t len;

	if (ports_decode(&ports, 1, data, size) < 0)
		return;
	len = ports_encode(&ports, 1, bytes);
	must(len <= sizeof(bytes) && ports_decode(&back, 1, bytes, len) == 0);
	must(back.count == ports.count);
}

static void try_reset(const uint8_t *data, size_t size)
{
	uint8_t bytes[REMOTE_CCR_RECORD];
	struct remote_ccr_record reset, back;

	if (remote_ccr_decode(&reset, data, size) < 0)
		return;
	remote_ccr_encode(&reset, bytes);
	must(remote_ccr_decode(&back, bytes, sizeof(bytes)) == 0 && back.cirn == reset.cirn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const uint8_t *data, size_t size) = {
		try_records, try_slots, try_reservation, try_owners, try_ports, try_reset,
	};

	if (size)
		tries[data[0] % (sizeof(tries) / sizeof(tries[0]))](data + 1, size - 1);
	return 0;
}
