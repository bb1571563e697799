/* ns.c - the fields of Identify Namespace (NVM command set 1.0, 4.1.5.1), its LBA formats, and the
 * list of the namespace's identifiers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/id/id.h"

static const struct id_bit nsfeat[] = {
	{ 0, "thin provisioning" },           { 1, "atomic sizes of its own" },
	{ 2, "error on deallocated blocks" }, { 3, "never reuses NGUID and EUI64" },
	{ 4, "tells preferred sizes" },       {},
};

static const struct id_bit mc[] = { { 0, "with the data" }, { 1, "in a separate buffer" }, {} };

static const struct id_bit dpc[] = {
	{ 0, "type 1" },      { 1, "type 2" },     { 2, "type 3" },
	{ 3, "first bytes" }, { 4, "last bytes" }, {},
};

static const struct id_bit nmic[] = { { 0, "several controllers" }, {} };

static const struct id_bit rescap[] = {
	{ 0, "persist through power loss" },
	{ 1, "write exclusive" },
	{ 2, "exclusive access" },
	{ 3, "write exclusive, registrants only" },
	{ 4, "exclusive access, registrants only" },
	{ 5, "write exclusive, all registrants" },
	{ 6, "exclusive access, all registrants" },
	{ 7, "ignore existing key as in 1.3" },
	{},
};

static const struct id_bit nsattr[] = { { 0, "write-protected" }, {} };

/* --- numbers in words ------------------------------------------------------------------------- */

static unsigned format_in_use(const struct nvme_id_ns *id)
{
	return (id->flbas & 0xf) | (id->nlbaf > 15 ? (id->flbas >> 5 & 3) << 4 : 0);
}

static uint64_t block_size(const struct nvme_id_ns *id)
{
	unsigned shift = id->lbaf[format_in_use(id)].ds;

	return shift < 32 ? UINT64_C(1) << shift : 0;
}

static void explain_lbas(const void *page, uint64_t value, char *text, size_t size)
{
	snprintf(text, size, "%s", weft_size_text(value * block_size(page)).s);
}

/* Counted from 0, and only where a feature says that it counts at all. */
static void explain_blocks(const void *page, uint64_t value, char *text, size_t size)
{
	snprintf(text, size, "%s", weft_size_text((value + 1) * block_size(page)).s);
}

static void explain_atomic(const void *page, uint64_t value, char *text, size_t size)
{
	if (((const struct nvme_id_ns *)page)->nsfeat & NVME_NS_FEAT_NATOMIC)
		explain_blocks(page, value, text, size);
	else
		snprintf(text, size, "the controller's");
}

static void explain_preferred(const void *page, uint64_t value, char *text, size_t size)
{
	if (((const struct nvme_id_ns *)page)->nsfeat & NVME_NS_FEAT_IO_OPT)
		explain_blocks(page, value, text, size);
	else
		snprintf(text, size, "not told");
}

static void explain_noiob(const void *page, uint64_t value, char *text, size_t size)
{
	if (value)
		explain_lbas(page, value, text, size);
	else
		snprintf(text, size, "not told");
}

static void explain_format(const void *page, uint64_t value, char *text, size_t size)
{
	const struct nvme_id_ns *id = page;

	snprintf(text, size, "format %u%s", format_in_use(id),
		 value & 0x10 ? ", metadata with the data" : "");
}

static void explain_from_0(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%" PRIu64, value + 1);
}

static void explain_dps(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value & 7)
		snprintf(text, size, "type %u", (unsigned)(value & 7));
	else
		snprintf(text, size, "off");
}

static void explain_dlfeat(const void *page, uint64_t value, char *text, size_t size)
{
	static const char *const reads[] = { "not told", "zeroes", "FFh" };

	(void)page;
	snprintf(text, size, "%s%s", (value & 7) < 3 ? reads[value & 7] : "reserved",
		 value & 8 ? "; write zeroes deallocates" : "");
}

static void explain_size(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%s", value ? weft_size_text(value).s : "not told");
}

/* --- the page --------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct nvme_id_ns, field), sizeof(((struct nvme_id_ns *)0)->field)

const struct id_field weft_id_ns_fields[] = {
	{ "nsze", AT(nsze), ID_NUMBER, "size", .explain = explain_lbas },
	{ "ncap", AT(ncap), ID_NUMBER, "capacity", .explain = explain_lbas },
	{ "nuse", AT(nuse), ID_NUMBER, "used", .explain = explain_lbas },
	{ "nsfeat", AT(nsfeat), ID_HEX, "features", nsfeat },
	{ "nlbaf", AT(nlbaf), ID_NUMBER, "LBA formats", .explain = explain_from_0 },
	{ "flbas", AT(flbas), ID_HEX, "in use", .explain = explain_format },
	{ "mc", AT(mc), ID_HEX, "metadata", mc },
	{ "dpc", AT(dpc), ID_HEX, "protection it can do", dpc },
	{ "dps", AT(dps), ID_HEX, "protection in use", .explain = explain_dps },
	{ "nmic", AT(nmic), ID_HEX, "may be used by", nmic },
	{ "rescap", AT(rescap), ID_HEX, "reservations", rescap },
	{ "dlfeat", AT(dlfeat), ID_HEX, "deallocated blocks read as", .explain = explain_dlfeat },
	{ "nawun", AT(nawun), ID_NUMBER, "atomic write", .explain = explain_atomic },
	{ "nawupf", AT(nawupf), ID_NUMBER, "atomic on power fail", .explain = explain_atomic },
	{ "nacwu", AT(nacwu), ID_NUMBER, "atomic compare and write", .explain = explain_atomic },
	{ "nabsn", AT(nabsn), ID_NUMBER, "atomic boundary", .explain = explain_noiob },
	{ "nabo", AT(nabo), ID_NUMBER, "atomic boundary offset" },
	{ "noiob", AT(noiob), ID_NUMBER, "optimal I/O boundary", .explain = explain_noiob },
	{ "nvmcap", AT(nvmcap), ID_WIDE, "allocated for it", .explain = explain_size },
	{ "npwg", AT(npwg), ID_NUMBER, "preferred write granularity",
	  .explain = explain_preferred },
	{ "npwa", AT(npwa), ID_NUMBER, "preferred write alignment", .explain = explain_preferred },
	{ "npdg", AT(npdg), ID_NUMBER, "preferred deallocate granularity",
	  .explain = explain_preferred },
	{ "npda", AT(npda), ID_NUMBER, "preferred deallocate alignment",
	  .explain = explain_preferred },
	{ "nows", AT(nows), ID_NUMBER, "optimal write size", .explain = explain_preferred },
	{ "mssrl", AT(mssrl), ID_NUMBER, "longest range of a copy", .explain = explain_lbas },
	{ "mcl", AT(mcl), ID_NUMBER, "longest copy", .explain = explain_lbas },
	{ "msrc", AT(msrc), ID_NUMBER, "ranges of a copy", .explain = explain_from_0 },
	{ "anagrpid", AT(anagrpid), ID_NUMBER, "ANA group" },
	{ "nsattr", AT(nsattr), ID_HEX, "attributes", nsattr },
	{ "nvmsetid", AT(nvmsetid), ID_NUMBER, "NVM set" },
	{ "endgid", AT(endgid), ID_NUMBER, "endurance group" },
	{ "nguid", AT(nguid), ID_DATA, "" },
	{ "eui64", AT(eui64), ID_DATA, "" },
	{},
};

/* --- LBA formats ------------------------------------------------------------------------------ */

static unsigned formats(const struct nvme_id_ns *id)
{
	return id->nlbaf < 63 ? id->nlbaf + 1u : 64;
}

json_t *weft_id_lbaf_json(const struct nvme_id_ns *id)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < formats(id); i++)
		json_array_append_new(list,
				      json_pack("{s:i, s:i, s:i, s:b}", "lbads", id->lbaf[i].ds,
						"ms", le16_to_cpu(id->lbaf[i].ms), "rp",
						id->lbaf[i].rp & 3, "in_use",
						i == format_in_use(id)));
	return list;
}

void weft_id_lbaf_print(const struct nvme_id_ns *id)
{
	static const char *const speed[] = { "best", "better", "good", "degraded" };
	char name[16], value[32], text[128];

	for (unsigned i = 0; i < formats(id); i++) {
		const struct nvme_lbaf *f = &id->lbaf[i];

		snprintf(name, sizeof(name), "LBAF %u", i);
		snprintf(value, sizeof(value), "%" PRIu64,
			 f->ds < 32 ? UINT64_C(1) << f->ds : UINT64_C(0));
		snprintf(text, sizeof(text), "bytes, %u of metadata, %s performance%s",
			 le16_to_cpu(f->ms), speed[f->rp & 3],
			 i == format_in_use(id) ? " (in use)" : "");
		weft_id_print_line(name, value, text);
	}
}

/* --- identifiers ------------------------------------------------------------------------------ */

static const char *descriptor_name(uint8_t type)
{
	switch (type) {
	case NVME_NIDT_EUI64:
		return "eui64";
	case NVME_NIDT_NGUID:
		return "nguid";
	case NVME_NIDT_UUID:
		return "uuid";
	case NVME_NIDT_CSI:
		return "csi";
	default:
		return "other";
	}
}

static void descriptor_text(const uint8_t *nid, uint8_t len, bool uuid, char *text)
{
	for (unsigned i = 0; i < len; i++) {
		if (uuid && (i == 4 || i == 6 || i == 8 || i == 10))
			*text++ = '-';
		text += sprintf(text, "%02x", nid[i]);
	}
}

/* The page is the peer's: its lengths end the walk where they leave it. */
json_t *weft_id_descriptors_json(const void *page)
{
	const size_t head = sizeof(struct nvme_ns_id_desc);
	json_t *object = json_object();
	const uint8_t *at = page, *end = at + NVME_IDENTIFY_DATA_SIZE;

	/* At any address: descriptors have any length. */
	while ((size_t)(end - at) > head && at[1] && at[1] <= (size_t)(end - at) - head) {
		bool uuid = at[0] == NVME_NIDT_UUID && at[1] == NVME_NIDT_UUID_LEN;
		char text[600] = "";

		descriptor_text(at + head, at[1], uuid, text);
		json_object_set_new(object, descriptor_name(at[0]), json_string(text));
		at += head + at[1];
	}
	return object;
}

void weft_id_descriptors_print(const json_t *descriptors)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)descriptors, name, value)
		weft_id_print_line(name, json_string_value(value), "");
}
