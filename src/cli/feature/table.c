/* table.c - features that a controller over fabrics may have (NVMe base 2.0, 5.27; NVM command set
 * 1.0, 4.1.3), by the names that nvme-cli has for them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/feature/feature.h"
#include "cli/id/id.h"

static const struct feature_part arbitration[] = {
	{ "ab", 0, 3, "arbitration burst (power of 2; 7: no limit)" },
	{ "lpw", 8, 8, "weight of low priority, counted from 0" },
	{ "mpw", 16, 8, "weight of medium priority, counted from 0" },
	{ "hpw", 24, 8, "weight of high priority, counted from 0" },
	{},
};

static const struct feature_part power_mgmt[] = {
	{ "ps", 0, 5, "power state" },
	{ "wh", 5, 3, "workload hint" },
	{},
};

static const struct feature_part temp_thresh[] = {
	{ "tmpth", 0, 16, "threshold (K)" },
	{ "tmpsel", 16, 4, "sensor (0: the composite temperature)" },
	{ "thsel", 20, 2, "0: over, 1: under" },
	{},
};

static const struct feature_part err_recovery[] = {
	{ "tler", 0, 16, "time limit of retries (100 ms; 0: none)" },
	{ "dulbe", 16, 1, "1: deallocated blocks are an error" },
	{},
};

static const struct feature_part volatile_wc[] = { { "wce", 0, 1, "1: the write cache is on" },
						   {} };

static const struct feature_part num_queues[] = {
	{ "nsqa", 0, 16, "I/O submission queues, counted from 0" },
	{ "ncqa", 16, 16, "I/O completion queues, counted from 0" },
	{},
};

static const struct feature_part write_atomic[] = {
	{ "dn", 0, 1, "1: atomic only where power fails" },
	{},
};

static const struct feature_part async_event[] = {
	{ "smart", 0, 8, "critical warnings" },
	{ "nan", 8, 1, "1: namespaces changed" },
	{ "fan", 9, 1, "1: firmware is activated" },
	{ "tln", 10, 1, "1: telemetry" },
	{ "anacn", 11, 1, "1: asymmetric namespace access changed" },
	{ "plealcn", 12, 1, "1: predictable latency" },
	{ "lbasin", 13, 1, "1: LBA status" },
	{ "egealcn", 14, 1, "1: endurance groups" },
	{ "ccrcn", 20, 1, "1: a cross-controller reset is over" },
	{ "dlpcn", 31, 1, "1: the discovery log changed" },
	{},
};

static const struct feature_part kato[] = {
	{ "kato", 0, 32, "keep-alive timeout (ms; 0: off)" },
	{},
};

static const struct feature_part hctm[] = {
	{ "tmt2", 0, 16, "heavy throttling from here on (K)" },
	{ "tmt1", 16, 16, "light throttling from here on (K)" },
	{},
};

static const struct feature_part iocs_profile[] = {
	{ "iocsci", 0, 9, "combination of I/O command sets" },
	{},
};

static const struct feature_part sw_progress[] = {
	{ "pbslc", 0, 8, "loads of software before the operating system" },
	{},
};

static const struct feature_part resv_mask[] = {
	{ "regpre", 1, 1, "1: no word of a registration that is preempted" },
	{ "resrel", 2, 1, "1: no word of a reservation that is released" },
	{ "respre", 3, 1, "1: no word of a reservation that is preempted" },
	{},
};

static const struct feature_part resv_persist[] = {
	{ "ptpl", 0, 1, "1: reservations persist through power loss" },
	{},
};

static const struct feature_part write_protect[] = {
	{ "wps", 0, 3, "0: off, 1: on, 2: until power is cycled, 3: for good" },
	{},
};

const struct feature weft_features[] = {
	{ "arbitration", "Arbitration", NVME_FEAT_FID_ARBITRATION, .parts = arbitration },
	{ "power-mgmt", "Power Management", NVME_FEAT_FID_POWER_MGMT, .parts = power_mgmt },
	{ "temp-thresh", "Temperature Threshold", NVME_FEAT_FID_TEMP_THRESH, .parts = temp_thresh },
	{ "err-recovery", "Error Recovery", NVME_FEAT_FID_ERR_RECOVERY, .per_namespace = true,
	  .parts = err_recovery },
	{ "volatile-wc", "Volatile Write Cache", NVME_FEAT_FID_VOLATILE_WC, .parts = volatile_wc },
	{ "num-queues", "Number of Queues", NVME_FEAT_FID_NUM_QUEUES, .parts = num_queues },
	{ "write-atomic", "Write Atomicity Normal", NVME_FEAT_FID_WRITE_ATOMIC,
	  .per_namespace = true, .parts = write_atomic },
	{ "async-event", "Asynchronous Event Configuration", NVME_FEAT_FID_ASYNC_EVENT,
	  .parts = async_event },
	{ "timestamp", "Timestamp", NVME_FEAT_FID_TIMESTAMP, .data_len = 8, .by_value = true },
	{ "kato", "Keep Alive Timer", NVME_FEAT_FID_KATO, .parts = kato },
	{ "hctm", "Host Controlled Thermal Management", NVME_FEAT_FID_HCTM, .parts = hctm },
	{ "host-behavior", "Host Behavior Support", NVME_FEAT_FID_HOST_BEHAVIOR, .data_len = 512 },
	{ "iocs-profile", "I/O Command Set Profile", NVME_FEAT_FID_IOCS_PROFILE,
	  .parts = iocs_profile },
	{ "sw-progress", "Software Progress Marker", NVME_FEAT_FID_SW_PROGRESS,
	  .parts = sw_progress },
	/* EXHID: on fabrics it has 128 bits. */
	{ "host-id", "Host Identifier", NVME_FEAT_FID_HOST_ID, .data_len = 16, .cdw11 = 1 },
	{ "resv-mask", "Reservation Notification Mask", NVME_FEAT_FID_RESV_MASK,
	  .per_namespace = true, .parts = resv_mask },
	{ "resv-persist", "Reservation Persistence", NVME_FEAT_FID_RESV_PERSIST,
	  .per_namespace = true, .parts = resv_persist },
	{ "write-protect", "Namespace Write Protection Config", NVME_FEAT_FID_WRITE_PROTECT,
	  .per_namespace = true, .parts = write_protect },
	{},
};

const struct feature *weft_feature_named(const char *name)
{
	for (const struct feature *f = weft_features; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
	}
	return NULL;
}

const struct feature *weft_feature_numbered(uint8_t fid)
{
	for (const struct feature *f = weft_features; f->name; f++) {
		if (f->fid == fid)
			return f;
	}
	return NULL;
}

/* --- its dword -------------------------------------------------------------------------------- */

static uint32_t part_value(const struct feature_part *part, uint32_t value)
{
	return (uint32_t)(value >> part->shift & ((UINT64_C(1) << part->width) - 1));
}

json_t *weft_feature_json(const struct feature *feature, uint32_t value)
{
	json_t *object = json_object();

	for (const struct feature_part *part = feature->parts; part && part->name; part++)
		json_object_set_new(object, part->name, json_integer(part_value(part, value)));
	return object;
}

void weft_feature_print(const struct feature *feature, uint32_t value)
{
	for (const struct feature_part *part = feature->parts; part && part->name; part++) {
		char name[16] = "", number[16];

		for (size_t i = 0; part->name[i] && i < sizeof(name) - 1; i++)
			name[i] = (char)toupper((unsigned char)part->name[i]);
		snprintf(number, sizeof(number), "%" PRIu32, part_value(part, value));
		weft_id_print_line(name, number, part->label);
	}
}
