/* op_desc.h - a table of the operations: opcode, kind of data, which controller capability they
 * need, whether they are idempotent. */
#ifndef WEFT_HOST_QUEUE_OP_DESC_H
#define WEFT_HOST_QUEUE_OP_DESC_H

#include "host/internal.h"

enum host_shape {
	SHAPE_NONE,  /* the whole namespace: Flush */
	SHAPE_DATA,  /* a range, and data for it */
	SHAPE_RANGE, /* a range alone */
	SHAPE_FUSED, /* a range, and data for it twice */
	SHAPE_RAW,
};

struct host_op_desc {
	const char *name;
	uint8_t opcode;
	enum host_shape shape;
	bool writes;     /* not on a read-only namespace */
	bool idempotent; /* doing it twice is the same as doing it once */
	uint16_t oncs;   /* bit that the controller must have set */
	unsigned flags;  /* that it takes */
};

enum { HOST_OP_DESCS = WEFT_RAW + 1 };
extern const struct host_op_desc host_op_descs[HOST_OP_DESCS];

/* NULL: there is no such operation. */
static inline const struct host_op_desc *host_op_desc(enum weft_op_code op)
{
	return (unsigned)op < HOST_OP_DESCS ? &host_op_descs[op] : NULL;
}

/* Doing @cmd twice is the same as doing it once. */
bool host_cmd_is_idempotent(const struct weft_cmd *cmd);
/* @cmd may change data. */
bool host_cmd_may_write(const struct weft_cmd *cmd);
/* @cmd may be sent again when the controller did not begin it. A raw command may not, unless it is
 * flagged idempotent: its submitter gets every status. */
bool host_cmd_may_retry_refused(const struct weft_cmd *cmd);
/* 0, or why @cmd cannot be submitted. */
int host_cmd_check(const struct host_traits *traits, const struct weft_cmd *cmd);
/* Bytes that one NVMe command of this kind may cover. */
uint64_t host_cmd_piece_max(const struct host_traits *traits, const struct weft_cmd *cmd);

#endif
