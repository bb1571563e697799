/* ctrl.c - the fields of Identify Controller that an engineer looks at (NVMe base 2.0,
 * 5.17.2.1). */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/id/id.h"

/* --- bits in words ---------------------------------------------------------------------------- */

static const struct id_bit cmic[] = {
	{ 0, "several ports" },
	{ 1, "several controllers" },
	{ 2, "SR-IOV" },
	{ 3, "reports ANA" },
	{},
};

static const struct id_bit oaes[] = {
	{ 8, "namespace changes" },
	{ 9, "firmware activation" },
	{ 11, "ANA changes" },
	{ 12, "predictable latency" },
	{ 13, "LBA status" },
	{ 14, "endurance group" },
	{ 15, "subsystem shutdown" },
	{ 20, "cross-controller resets" },
	{ 27, "zone descriptors" },
	{ 31, "discovery log changes" },
	{},
};

static const struct id_bit ctratt[] = {
	{ 0, "128-bit host identifier" },
	{ 1, "non-operational permissive mode" },
	{ 2, "NVM sets" },
	{ 3, "read recovery levels" },
	{ 4, "endurance groups" },
	{ 5, "predictable latency" },
	{ 6, "traffic-based keep-alive" },
	{ 7, "namespace granularity" },
	{ 8, "SQ associations" },
	{ 9, "UUID list" },
	{ 10, "multi-domain" },
	{ 11, "fixed capacity" },
	{ 12, "variable capacity" },
	{ 13, "delete endurance group" },
	{ 14, "delete NVM set" },
	{ 15, "extended LBA formats" },
	{ 19, "flexible data placement" },
	{},
};

static const struct id_bit oacs[] = {
	{ 0, "security" },        { 1, "format" },
	{ 2, "firmware" },        { 3, "namespace management" },
	{ 4, "self-test" },       { 5, "directives" },
	{ 6, "NVMe-MI" },         { 7, "virtualization" },
	{ 8, "doorbell buffer" }, { 9, "LBA status" },
	{ 10, "lockdown" },       {},
};

static const struct id_bit frmw[] = {
	{ 0, "slot 1 is read-only" },
	{ 4, "activates without reset" },
	{ 5, "detects overlapping updates" },
	{},
};

static const struct id_bit lpa[] = {
	{ 0, "SMART per namespace" }, { 1, "command effects" },
	{ 2, "extended data" },       { 3, "telemetry" },
	{ 4, "persistent events" },   { 5, "supported log pages" },
	{ 6, "telemetry area 4" },    {},
};

static const struct id_bit anacap[] = {
	{ 0, "optimized" },
	{ 1, "non-optimized" },
	{ 2, "inaccessible" },
	{ 3, "persistent loss" },
	{ 4, "change" },
	{ 6, "group ids do not change" },
	{ 7, "group id can be set" },
	{},
};

static const struct id_bit oncs[] = {
	{ 0, "compare" },
	{ 1, "write uncorrectable" },
	{ 2, "deallocate" },
	{ 3, "write zeroes" },
	{ 4, "save in features" },
	{ 5, "reservations" },
	{ 6, "timestamp" },
	{ 7, "verify" },
	{ 8, "copy" },
	{ 9, "copy is atomic as a write is" },
	{ 10, "copy is always fast" },
	{ 11, "write zeroes has a limit of its own with deallocate" },
	{ 12, "write zeroes of a namespace" },
	{},
};

static const struct id_bit fuses[] = { { 0, "compare and write" }, {} };

static const struct id_bit fna[] = {
	{ 0, "format takes all namespaces" },
	{ 1, "secure erase takes all namespaces" },
	{ 2, "cryptographic erase" },
	{ 3, "not with NSID FFFFFFFFh" },
	{},
};

static const struct id_bit sgls[] = {
	{ 0, "any alignment" },
	{ 1, "dword alignment" },
	{ 2, "keyed" },
	{ 16, "bit bucket" },
	{ 17, "byte-aligned MPTR" },
	{ 18, "larger than the data" },
	{ 19, "MPTR with SGL" },
	{ 20, "in-capsule offset" },
	{ 21, "transport data block" },
	{},
};

static const struct id_bit ofcs[] = { { 0, "disconnect" }, {} };
static const struct id_bit ocfs[] = { { 0, "format 0" }, { 1, "format 1" }, {} };

/* --- numbers in words ------------------------------------------------------------------------- */

static void explain_size(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%s", weft_size_text(value).s);
	else
		snprintf(text, size, "not told");
}

static void explain_mdts(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	/* In units of CAP.MPSMIN, which is 4 KiB on every controller over fabrics we know of. */
	if (!value)
		snprintf(text, size, "no limit");
	else if (value < 50)
		snprintf(text, size, "%s", weft_size_text(UINT64_C(4096) << value).s);
}

static void explain_version(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%u.%u.%u", (unsigned)(value >> 16), (unsigned)(value >> 8 & 0xff),
		 (unsigned)(value & 0xff));
}

static void explain_type(const void *page, uint64_t value, char *text, size_t size)
{
	static const char *const types[] = { "not told", "I/O", "discovery", "administrative" };

	(void)page;
	snprintf(text, size, "%s", value < 4 ? types[value] : "reserved");
}

static void explain_dctype(const void *page, uint64_t value, char *text, size_t size)
{
	static const char *const types[] = { "not told", "direct (DDC)", "central (CDC)" };

	(void)page;
	snprintf(text, size, "%s", value < 3 ? types[value] : "reserved");
}

static void explain_from_0(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%" PRIu64, value + 1);
}

static void explain_kas(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%" PRIu64 " ms", value * 100);
	else
		snprintf(text, size, "no keep-alive");
}

static void explain_ms(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%" PRIu64 " ms", value);
}

static void explain_instance(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (!value)
		snprintf(text, size, "not told");
}

static void explain_ccrl(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (!value)
		snprintf(text, size, "none");
}

static void explain_seconds(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%" PRIu64 " s", value);
}

static void explain_entry(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%u to %u bytes", 1u << (value & 15), 1u << (value >> 4));
}

static void explain_vwc(const void *page, uint64_t value, char *text, size_t size)
{
	static const char *const flush[] = { "", ", flush of all is not told",
					     ", flush takes one namespace",
					     ", flush can take all namespaces" };

	(void)page;
	snprintf(text, size, "%s%s", value & 1 ? "present" : "none", flush[value >> 1 & 3]);
}

static void explain_blocks(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%" PRIu64 " block%s", value + 1, value ? "s" : "");
}

static void explain_capsule(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value >= 4)
		snprintf(text, size, "%" PRIu64 " bytes, %" PRIu64 " of them data", value * 16,
			 value * 16 - 64);
}

static void explain_16s(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%" PRIu64 " bytes", value * 16);
}

static void explain_fcatt(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%s controllers", value & 1 ? "static" : "dynamic");
}

/* --- the page --------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct nvme_id_ctrl, field), sizeof(((struct nvme_id_ctrl *)0)->field)

const struct id_field weft_id_ctrl_fields[] = {
	{ "vid", AT(vid), ID_HEX, "PCI vendor" },
	{ "ssvid", AT(ssvid), ID_HEX, "PCI subsystem vendor" },
	{ "sn", AT(sn), ID_TEXT, "" },
	{ "mn", AT(mn), ID_TEXT, "" },
	{ "fr", AT(fr), ID_TEXT, "firmware" },
	{ "subnqn", AT(subnqn), ID_TEXT, "" },
	{ "cntlid", AT(cntlid), ID_NUMBER, "controller id" },
	{ "cntrltype", AT(cntrltype), ID_NUMBER, "type", .explain = explain_type },
	{ "dctype", AT(dctype), ID_NUMBER, "discovery controller", .explain = explain_dctype },
	{ "ver", AT(ver), ID_HEX, "NVMe version", .explain = explain_version },
	{ "mdts", AT(mdts), ID_NUMBER, "largest transfer", .explain = explain_mdts },
	{ "rab", AT(rab), ID_NUMBER, "recommended arbitration burst (power of 2)" },
	{ "ieee", AT(ieee), ID_DATA, "OUI" },
	{ "cmic", AT(cmic), ID_HEX, "the subsystem has", cmic },
	{ "rtd3r", AT(rtd3r), ID_NUMBER, "RTD3 resume (microseconds)" },
	{ "rtd3e", AT(rtd3e), ID_NUMBER, "RTD3 entry (microseconds)" },
	{ "oaes", AT(oaes), ID_HEX, "optional events", oaes },
	{ "ctratt", AT(ctratt), ID_HEX, "attributes", ctratt },
	/* NVMe base 2.3 put them where <nvme/types.h> has reserved fields. */
	{ "ciu", NVME_ID_CTRL_CIU, 1, ID_NUMBER, "instance", .explain = explain_instance },
	{ "cirn", NVME_ID_CTRL_CIRN, 8, ID_HEX, "instance's random number" },
	{ "crdt1", AT(crdt1), ID_NUMBER, "command retry delay 1 (100 ms)" },
	{ "crdt2", AT(crdt2), ID_NUMBER, "command retry delay 2 (100 ms)" },
	{ "crdt3", AT(crdt3), ID_NUMBER, "command retry delay 3 (100 ms)" },
	{ "oacs", AT(oacs), ID_HEX, "optional admin commands", oacs },
	{ "acl", AT(acl), ID_NUMBER, "aborts at once", .explain = explain_from_0 },
	{ "aerl", AT(aerl), ID_NUMBER, "event requests at once", .explain = explain_from_0 },
	{ "frmw", AT(frmw), ID_HEX, "firmware slots", frmw },
	{ "lpa", AT(lpa), ID_HEX, "log pages", lpa },
	{ "elpe", AT(elpe), ID_NUMBER, "error log entries", .explain = explain_from_0 },
	{ "npss", AT(npss), ID_NUMBER, "power states", .explain = explain_from_0 },
	{ "wctemp", AT(wctemp), ID_NUMBER, "warning temperature (K)" },
	{ "cctemp", AT(cctemp), ID_NUMBER, "critical temperature (K)" },
	{ "tnvmcap", AT(tnvmcap), ID_WIDE, "capacity", .explain = explain_size },
	{ "unvmcap", AT(unvmcap), ID_WIDE, "unallocated", .explain = explain_size },
	{ "kas", AT(kas), ID_NUMBER, "keep-alive granularity", .explain = explain_kas },
	/* NVMe base 2.1, likewise. */
	{ "cqt", NVME_ID_CTRL_CQT, 2, ID_NUMBER, "command quiesce time", .explain = explain_ms },
	{ "sanicap", AT(sanicap), ID_HEX, "sanitize capabilities" },
	{ "nsetidmax", AT(nsetidmax), ID_NUMBER, "highest NVM set" },
	{ "endgidmax", AT(endgidmax), ID_NUMBER, "highest endurance group" },
	{ "anatt", AT(anatt), ID_NUMBER, "ANA transition time", .explain = explain_seconds },
	{ "anacap", AT(anacap), ID_HEX, "ANA states", anacap },
	{ "anagrpmax", AT(anagrpmax), ID_NUMBER, "highest ANA group" },
	{ "nanagrpid", AT(nanagrpid), ID_NUMBER, "ANA groups" },
	{ "sqes", AT(sqes), ID_HEX, "submission entry", .explain = explain_entry },
	{ "cqes", AT(cqes), ID_HEX, "completion entry", .explain = explain_entry },
	{ "maxcmd", AT(maxcmd), ID_NUMBER, "commands in flight on one queue" },
	{ "nn", AT(nn), ID_NUMBER, "highest namespace id" },
	{ "mnan", AT(mnan), ID_NUMBER, "namespaces at most" },
	{ "oncs", AT(oncs), ID_HEX, "optional I/O commands", oncs },
	{ "fuses", AT(fuses), ID_HEX, "fused operations", fuses },
	{ "fna", AT(fna), ID_HEX, "format attributes", fna },
	{ "vwc", AT(vwc), ID_HEX, "volatile write cache", .explain = explain_vwc },
	{ "awun", AT(awun), ID_NUMBER, "atomic write", .explain = explain_blocks },
	{ "awupf", AT(awupf), ID_NUMBER, "atomic on power fail", .explain = explain_blocks },
	{ "acwu", AT(acwu), ID_NUMBER, "atomic compare and write", .explain = explain_blocks },
	{ "nwpc", AT(nwpc), ID_HEX, "namespace write protection" },
	{ "ocfs", AT(ocfs), ID_HEX, "copy descriptors", ocfs },
	{ "sgls", AT(sgls), ID_HEX, "SGLs", sgls },
	{ "ioccsz", AT(ioccsz), ID_NUMBER, "command capsule", .explain = explain_capsule },
	{ "iorcsz", AT(iorcsz), ID_NUMBER, "response capsule", .explain = explain_16s },
	{ "icdoff", AT(icdoff), ID_NUMBER, "in-capsule data offset", .explain = explain_16s },
	{ "fcatt", AT(fcatt), ID_HEX, "controller model", .explain = explain_fcatt },
	{ "msdbd", AT(msdbd), ID_NUMBER, "SGL data block descriptors" },
	{ "ofcs", AT(ofcs), ID_HEX, "optional fabrics commands", ofcs },
	{ "ccrl", NVME_ID_CTRL_CCRL, 1, ID_NUMBER, "cross-controller resets at once",
	  .explain = explain_ccrl },
	{},
};
