/* status.h - NVMe status: SCT << 8 | SC, with Do Not Retry where a retry cannot help. */
#ifndef WEFT_PROTO_STATUS_H
#define WEFT_PROTO_STATUS_H

#include <stdbool.h>

#include "proto/nvme.h"

#define SC_GENERIC(sc) (NVME_SC_##sc)
#define SC_COMMAND(sc) (NVME_SCT_CMD_SPECIFIC << 8 | NVME_SC_##sc)
#define SC_MEDIA(sc)   (NVME_SCT_MEDIA << 8 | NVME_SC_##sc)
#define SC_PATH(sc)    (NVME_SCT_PATH << 8 | NVME_SC_##sc)
#define SC_DNR         NVME_SC_DNR

/* What a failed backend operation tells the host; @reading: it was to read, not to change or to make
 * durable. docs/durability.md has the table. */
uint16_t weft_status_from_errno(int rc, bool reading);

/* What a host tells its caller. */
int weft_status_to_errno(uint16_t status);
int weft_io_status_to_errno(uint16_t status);

/* In words, for logs and people. */
const char *weft_status_text(uint16_t status);
/* From 0x180 on, what a status means depends on the command; this is for I/O commands. */
const char *weft_io_status_text(uint16_t status);

#endif
