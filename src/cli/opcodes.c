/* opcodes.c - commands by their opcodes (NVMe base 2.0, figures 138 and 388; NVM command set 1.0,
 * figure 17). */
#include "cli/passthru.h"

#include "proto/nvme.h"

static const char *const admin_names[256] = {
	[nvme_admin_delete_sq] = "Delete I/O Submission Queue",
	[nvme_admin_create_sq] = "Create I/O Submission Queue",
	[nvme_admin_get_log_page] = "Get Log Page",
	[nvme_admin_delete_cq] = "Delete I/O Completion Queue",
	[nvme_admin_create_cq] = "Create I/O Completion Queue",
	[nvme_admin_identify] = "Identify",
	[nvme_admin_abort_cmd] = "Abort",
	[nvme_admin_set_features] = "Set Features",
	[nvme_admin_get_features] = "Get Features",
	[nvme_admin_async_event] = "Asynchronous Event Request",
	[nvme_admin_ns_mgmt] = "Namespace Management",
	[nvme_admin_fw_commit] = "Firmware Commit",
	[nvme_admin_fw_download] = "Firmware Image Download",
	[nvme_admin_dev_self_test] = "Device Self-test",
	[nvme_admin_ns_attach] = "Namespace Attachment",
	[nvme_admin_keep_alive] = "Keep Alive",
	[nvme_admin_directive_send] = "Directive Send",
	[nvme_admin_directive_recv] = "Directive Receive",
	[nvme_admin_virtual_mgmt] = "Virtualization Management",
	[nvme_admin_nvme_mi_send] = "NVMe-MI Send",
	[nvme_admin_nvme_mi_recv] = "NVMe-MI Receive",
	[nvme_admin_capacity_mgmt] = "Capacity Management",
	[nvme_admin_discovery_info_mgmt] = "Discovery Information Management",
	[nvme_admin_lockdown] = "Lockdown",
	[NVME_ADMIN_CROSS_CTRL_RESET] = "Cross-Controller Reset",
	[nvme_admin_dbbuf] = "Doorbell Buffer Config",
	[nvme_admin_fabrics] = "Fabrics",
	[nvme_admin_format_nvm] = "Format NVM",
	[nvme_admin_security_send] = "Security Send",
	[nvme_admin_security_recv] = "Security Receive",
	[nvme_admin_sanitize_nvm] = "Sanitize",
	[nvme_admin_get_lba_status] = "Get LBA Status",
};

static const char *const io_names[256] = {
	[nvme_cmd_flush] = "Flush",
	[nvme_cmd_write] = "Write",
	[nvme_cmd_read] = "Read",
	[nvme_cmd_write_uncor] = "Write Uncorrectable",
	[nvme_cmd_compare] = "Compare",
	[nvme_cmd_write_zeroes] = "Write Zeroes",
	[nvme_cmd_dsm] = "Dataset Management",
	[nvme_cmd_verify] = "Verify",
	[nvme_cmd_resv_register] = "Reservation Register",
	[nvme_cmd_resv_report] = "Reservation Report",
	[nvme_cmd_resv_acquire] = "Reservation Acquire",
	[nvme_cmd_io_mgmt_recv] = "I/O Management Receive",
	[nvme_cmd_resv_release] = "Reservation Release",
	[nvme_cmd_copy] = "Copy",
	[nvme_cmd_io_mgmt_send] = "I/O Management Send",
};

const char *weft_opcode_text(bool admin, uint8_t opcode)
{
	const char *name = admin ? admin_names[opcode] : io_names[opcode];

	return name ? name : "Unknown";
}
