/* plan.c - the plan of a copy: which piece is next, how far the copy is, and checksums of
 * pieces. */
#include <errno.h>
#include <isa-l/crc64.h>
#include <stdlib.h>

#include "cli/cp/internal.h"

void weft_cp_plan_range(struct cp *cp, uint64_t end)
{
	cp->next = 0;
	cp->end = end;
	cp->broken = CP_UNKNOWN;
	atomic_store(&cp->done, 0);
}

uint64_t weft_cp_padded(const struct cp *cp, uint64_t length)
{
	uint64_t rest = length % cp->to->block;

	return rest ? length + cp->to->block - rest : length;
}

/* How long the piece at @offset is if it is a hole of the source: whole pieces, or up to the
 * end. */
static uint64_t hole_length(struct cp *cp, uint64_t offset, uint64_t left)
{
	uint64_t max = CP_HOLE_MAX - CP_HOLE_MAX % cp->piece, hole;

	if (cp->verifying || !cp->sparse || !cp->from->ops->hole)
		return 0;
	hole = cp->from->ops->hole(cp->from, cp->from->base + offset);
	if (hole >= left)
		hole = left;
	else
		hole -= hole % cp->piece;
	return hole > max ? max : hole;
}

/* How much is left to take; 0: nothing, or not any more. */
static uint64_t left_to_take(struct cp *cp)
{
	uint64_t left = 0;

	pthread_mutex_lock(&cp->lock);
	if (!atomic_load(&cp->stop) && !weft_cp_signal() && cp->next < cp->end)
		left = cp->end - cp->next;
	pthread_mutex_unlock(&cp->lock);
	return left;
}

/* A source may have to ask the target for its holes. Readers of the plan do not wait for that. */
bool weft_cp_take_piece(struct cp *cp, struct cp_xfer *xfer)
{
	uint64_t hole, left;

	pthread_mutex_lock(&cp->taking);
	left = left_to_take(cp);
	if (left) {
		hole = hole_length(cp, cp->next, left);
		xfer->offset = cp->next;
		xfer->length = hole ? hole : left < cp->piece ? left : cp->piece;
		xfer->hole = hole;
		pthread_mutex_lock(&cp->lock);
		cp->next += xfer->length;
		pthread_mutex_unlock(&cp->lock);
	}
	pthread_mutex_unlock(&cp->taking);
	return left;
}

void weft_cp_set_total(struct cp *cp, uint64_t total)
{
	pthread_mutex_lock(&cp->lock);
	cp->total = cp->end = total;
	pthread_mutex_unlock(&cp->lock);
}

void weft_cp_piece_failed(struct cp *cp, const struct cp_xfer *xfer, int rc)
{
	pthread_mutex_lock(&cp->lock);
	if (xfer->offset < cp->broken)
		cp->broken = xfer->offset;
	cp->unknown |= rc == -ECONNRESET;
	if (rc != -ECANCELED && !cp->rc) {
		cp->rc = rc;
		cp->err = xfer->err;
	}
	pthread_mutex_unlock(&cp->lock);
	atomic_store(&cp->stop, true);
}

uint64_t weft_cp_completed_upto(struct cp *cp)
{
	uint64_t complete;

	pthread_mutex_lock(&cp->lock);
	complete = cp->broken < cp->next ? cp->broken : cp->next;
	if (complete > cp->end)
		complete = cp->end;
	pthread_mutex_unlock(&cp->lock);
	return complete;
}

/* --- checksums -------------------------------------------------------------------------------- */

static uint64_t sum_of(const char *buf, uint64_t length)
{
	return crc64_ecma_refl(0, (const unsigned char *)buf, length);
}

/* Under the lock: a stream's end is not known beforehand. */
static bool sums_fit(struct cp *cp, size_t count)
{
	size_t wanted = cp->nsums ? cp->nsums : 1024;
	uint64_t *sums;

	if (count <= cp->nsums)
		return true;
	while (wanted < count)
		wanted *= 2;
	sums = realloc(cp->sums, wanted * sizeof(*sums));
	if (!sums)
		return false;
	cp->sums = sums;
	cp->nsums = wanted;
	return true;
}

/* A hole counts as the pieces it spans; its last may be shorter than a piece. */
static void keep_hole(struct cp *cp, const struct cp_xfer *xfer, size_t first)
{
	uint64_t whole = xfer->put_length / cp->piece, rest = xfer->put_length % cp->piece;

	for (uint64_t i = 0; i < whole; i++)
		cp->sums[first + i] = cp->zero_sum;
	if (rest) {
		__builtin_memset(xfer->buf, 0, rest);
		cp->sums[first + whole] = sum_of(xfer->buf, rest);
	}
}

void weft_cp_keep_sum(struct cp *cp, const struct cp_xfer *xfer)
{
	uint64_t sum = xfer->hole ? 0 : sum_of(xfer->buf, xfer->put_length);
	size_t first = xfer->offset / cp->piece;
	size_t count = first + xfer->put_length / cp->piece + 1;

	pthread_mutex_lock(&cp->lock);
	if (!sums_fit(cp, count)) {
		cp->rc = weft_fail(&cp->err, -ENOMEM, "no memory for the checksums of --verify");
		atomic_store(&cp->stop, true);
	} else if (xfer->hole) {
		keep_hole(cp, xfer, first);
	} else {
		cp->sums[first] = sum;
	}
	pthread_mutex_unlock(&cp->lock);
}

void weft_cp_check_sum(struct cp *cp, const struct cp_xfer *xfer)
{
	uint64_t sum = sum_of(xfer->buf, xfer->length);

	pthread_mutex_lock(&cp->lock);
	if (sum != cp->sums[xfer->offset / cp->piece]) {
		if (!cp->differ++ || xfer->offset < cp->differ_at)
			cp->differ_at = xfer->offset;
	}
	pthread_mutex_unlock(&cp->lock);
}
