/* stand_in.h - a controller without a connection: what it would answer comes from the input.
 *
 *   host_admin_start() ─▶ wanted ─▶ stand_in_answer() ─▶ done()
 *   weft_identify(), weft_admin(), weft_log_page(), weft_connect() ─▶ answered at once
 *
 * The linker puts these in the place of the host's own (--wrap): everything above them is real. */
#ifndef WEFT_FUZZ_STAND_IN_H
#define WEFT_FUZZ_STAND_IN_H

#include "host/internal.h"

/* --- the input ---------------------------------------------------------------------------- */

void input_set(const uint8_t *data, size_t size);
size_t input_left(void);
uint8_t u8(void);
uint16_t u16(void);
uint32_t u32(void);
uint64_t u64(void);
/* At most @most bytes of @size; the rest of them is zeroes. */
void input_bytes(void *to, size_t size, size_t most);

/* --- the controller ----------------------------------------------------------------------- */

extern struct weft_ctrl *stand_in;
extern bool stand_in_up, stand_in_broken;
extern unsigned stand_in_connects; /* tried */
extern unsigned stand_in_open;     /* connected and not disconnected */

void stand_in_create(void); /* once */
/* As before the first connection. */
void stand_in_reset(void);
/* Answers the oldest command that waits; false: there is none. */
bool stand_in_answer(void);
void stand_in_turn(uint64_t ms);
uint64_t stand_in_clock(void *arg);
/* Whatever waits is lost. */
void stand_in_lose(void);

#endif
