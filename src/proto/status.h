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

/* The status of a failed backend operation; @reading: it was a read, not a write or flush.
 * docs/durability.md has the table. */
uint16_t weft_status_from_errno(int rc, bool reading);

/* For the host's caller. */
int weft_status_to_errno(uint16_t status);
int weft_io_status_to_errno(uint16_t status);

/* In words, for logs and people. */
const char *weft_status_text(uint16_t status);
/* From 0x180 on the meaning of a status depends on the command; this is for I/O commands. */
const char *weft_io_status_text(uint16_t status);

#endif
