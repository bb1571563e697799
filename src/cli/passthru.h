/* passthru.h - a command as it is: an admin command, or an I/O command on a queue of its own. */
#ifndef WEFT_CLI_PASSTHRU_H
#define WEFT_CLI_PASSTHRU_H

#include "cli/host_options.h"
#include "proto/nvme.h"

struct weft_passthru {
	const union nvme_sqe *sqe;
	void *buf;
	uint32_t length;

	/* What came of it. */
	uint64_t result;
	uint32_t moved; /* bytes of @buf, if it succeeded; the rest is zeroes, which nobody sent */
};

/* 0, -errno with a sentence, or the status with which the controller refused it, and then without
 * one. */
int weft_passthru_admin(struct weft_ctrl *ctrl, struct weft_passthru *it, struct weft_err *err);
int weft_passthru_io(struct weft_remote *remote, struct weft_passthru *it, struct weft_err *err);

/* After a success, for who takes the data apart: 0, or a sentence if fewer than @needed bytes
 * moved. */
int weft_passthru_check(const struct weft_passthru *it, bool admin, uint32_t needed,
			struct weft_err *err);

#endif
