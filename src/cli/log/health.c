/* health.c - SMART / Health Information and Endurance Group Information (NVMe base 2.0, 5.16.1.3
 * and 5.16.1.10), under the names that nvme-cli gives their fields. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/id/id.h"
#include "cli/log/log.h"

enum { KELVIN = 273, UNIT = 512 * 1000 };

static const struct id_bit smart_warnings[] = {
	{ 0, "spare is below its threshold" },
	{ 1, "temperature is beyond a threshold" },
	{ 2, "reliability is degraded" },
	{ 3, "read-only" },
	{ 4, "backup of volatile memory failed" },
	{ 5, "persistent memory is read-only" },
	{},
};

static const struct id_bit endurance_warnings[] = {
	{ 0, "spare is below its threshold" },
	{ 2, "reliability is degraded" },
	{ 3, "read-only" },
	{},
};

static void explain_kelvin(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "K, %d C", (int)value - KELVIN);
	else
		snprintf(text, size, "not told");
}

static void explain_percent(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	(void)value;
	snprintf(text, size, "%%");
}

/* In thousands of 512 bytes, rounded up. */
static void explain_units(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value && value < UINT64_MAX / UNIT)
		snprintf(text, size, "up to %s", weft_size_text(value * UNIT).s);
}

static void explain_bytes(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "%s", weft_size_text(value).s);
	else
		snprintf(text, size, "not told");
}

static void explain_minutes(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "min");
}

static void explain_seconds(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value)
		snprintf(text, size, "s");
}

/* --- SMART ------------------------------------------------------------------------------------ */

#define AT(field) \
	offsetof(struct nvme_smart_log, field), sizeof(((struct nvme_smart_log *)0)->field)
#define SENSOR(n)                                                                \
	{                                                                        \
		"temperature_sensor_" #n, AT(temp_sensor[n - 1]), ID_NUMBER, "", \
			.optional = true, .explain = explain_kelvin              \
	}

static const struct id_field smart_fields[] = {
	{ "critical_warning", AT(critical_warning), ID_NUMBER, "", smart_warnings },
	{ "temperature", AT(temperature), ID_NUMBER, "", .explain = explain_kelvin },
	{ "avail_spare", AT(avail_spare), ID_NUMBER, "", .explain = explain_percent },
	{ "spare_thresh", AT(spare_thresh), ID_NUMBER, "", .explain = explain_percent },
	{ "percent_used", AT(percent_used), ID_NUMBER, "", .explain = explain_percent },
	{ "endurance_grp_critical_warning_summary", AT(endu_grp_crit_warn_sumry), ID_NUMBER, "",
	  endurance_warnings },
	{ "data_units_read", AT(data_units_read), ID_WIDE, "", .explain = explain_units },
	{ "data_units_written", AT(data_units_written), ID_WIDE, "", .explain = explain_units },
	{ "host_read_commands", AT(host_reads), ID_WIDE, "" },
	{ "host_write_commands", AT(host_writes), ID_WIDE, "" },
	{ "controller_busy_time", AT(ctrl_busy_time), ID_WIDE, "", .explain = explain_minutes },
	{ "power_cycles", AT(power_cycles), ID_WIDE, "" },
	{ "power_on_hours", AT(power_on_hours), ID_WIDE, "" },
	{ "unsafe_shutdowns", AT(unsafe_shutdowns), ID_WIDE, "" },
	{ "media_errors", AT(media_errors), ID_WIDE, "" },
	{ "num_err_log_entries", AT(num_err_log_entries), ID_WIDE, "" },
	{ "warning_temp_time", AT(warning_temp_time), ID_NUMBER, "", .explain = explain_minutes },
	{ "critical_comp_time", AT(critical_comp_time), ID_NUMBER, "", .explain = explain_minutes },
	SENSOR(1),
	SENSOR(2),
	SENSOR(3),
	SENSOR(4),
	SENSOR(5),
	SENSOR(6),
	SENSOR(7),
	SENSOR(8),
	{ "thm_temp1_trans_count", AT(thm_temp1_trans_count), ID_NUMBER, "" },
	{ "thm_temp2_trans_count", AT(thm_temp2_trans_count), ID_NUMBER, "" },
	{ "thm_temp1_total_time", AT(thm_temp1_total_time), ID_NUMBER, "",
	  .explain = explain_seconds },
	{ "thm_temp2_total_time", AT(thm_temp2_total_time), ID_NUMBER, "",
	  .explain = explain_seconds },
	{},
};

json_t *weft_log_smart_json(const void *page, size_t size)
{
	(void)size;
	return weft_id_json(smart_fields, page);
}

void weft_log_smart_print(const void *page, size_t size)
{
	(void)size;
	weft_id_print_names(smart_fields, page);
}

/* --- endurance groups ------------------------------------------------------------------------- */

#undef AT
#define AT(field)                                         \
	offsetof(struct nvme_endurance_group_log, field), \
		sizeof(((struct nvme_endurance_group_log *)0)->field)

static const struct id_field endurance_fields[] = {
	{ "critical_warning", AT(critical_warning), ID_NUMBER, "", endurance_warnings },
	{ "avl_spare", AT(avl_spare), ID_NUMBER, "", .explain = explain_percent },
	{ "avl_spare_threshold", AT(avl_spare_threshold), ID_NUMBER, "",
	  .explain = explain_percent },
	{ "percent_used", AT(percent_used), ID_NUMBER, "", .explain = explain_percent },
	{ "endurance_estimate", AT(endurance_estimate), ID_WIDE, "" },
	{ "data_units_read", AT(data_units_read), ID_WIDE, "" },
	{ "data_units_written", AT(data_units_written), ID_WIDE, "" },
	{ "media_units_written", AT(media_units_written), ID_WIDE, "" },
	{ "host_read_cmds", AT(host_read_cmds), ID_WIDE, "" },
	{ "host_write_cmds", AT(host_write_cmds), ID_WIDE, "" },
	{ "media_data_integrity_err", AT(media_data_integrity_err), ID_WIDE, "" },
	{ "num_err_info_log_entries", AT(num_err_info_log_entries), ID_WIDE, "" },
	/* NVMe base 2.0 put them where <nvme/types.h> has reserved bytes. */
	{ "total_end_grp_cap", 160, 16, ID_WIDE, "", .explain = explain_bytes },
	{ "unalloc_end_grp_cap", 176, 16, ID_WIDE, "", .explain = explain_bytes },
	{},
};

json_t *weft_log_endurance_json(const void *page, size_t size)
{
	(void)size;
	return weft_id_json(endurance_fields, page);
}

void weft_log_endurance_print(const void *page, size_t size)
{
	(void)size;
	weft_id_print_names(endurance_fields, page);
}
