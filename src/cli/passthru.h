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

/* --- what a command is called, opcodes.c ------------------------------------------------------ */

/* "Get Log Page"; "Unknown" where the specification has none. A constant, never NULL. */
const char *weft_opcode_text(bool admin, uint8_t opcode);

/* --- which field a controller refused it for (Invalid Field), from its error log -----------------
 *
 * Each returns whether that is the reason, and then the sentence is set. @uri: as the user wrote
 * it. */

/* Reservations of the namespace do not persist through power loss. */
bool weft_invalid_field_ptpl(struct weft_ctrl *ctrl, const char *uri, uint32_t nsid,
			     struct weft_err *err);
/* The controller does not have the feature, and says so in its log page of features. */
bool weft_invalid_field_feature(struct weft_ctrl *ctrl, const char *uri, uint8_t fid,
				const char *name, struct weft_err *err);

#endif
