/* passthru.h - an I/O command as it is, on a queue of its own. */
#ifndef WEFT_CLI_PASSTHRU_H
#define WEFT_CLI_PASSTHRU_H

#include "cli/host_options.h"
#include "proto/nvme.h"

/* As weft_admin(): 0, -errno with a sentence, or the status with which the controller refused it, and
 * then without one. */
int weft_passthru_io(struct weft_remote *remote, const union nvme_sqe *sqe, void *buf,
		     uint32_t length, uint64_t *result, struct weft_err *err);

#endif
