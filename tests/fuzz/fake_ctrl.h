/* fake_ctrl.h - a controller without a connection: what it would answer comes from the input.
 *
 *   host_admin_start() ─▶ wanted ─▶ stand_in_answer() ─▶ done()
 *   weft_identify(), weft_admin(), weft_log_page(), weft_connect() ─▶ answered at once
 *
 * The linker puts these in the place of the host's own (--wrap): everything above them is real. */
#ifndef WEFT_TESTS_FUZZ_FAKE_CTRL_H
#define WEFT_TESTS_FUZZ_FAKE_CTRL_H

#include "host/internal.h"

extern struct weft_ctrl *stand_in;
extern struct host_path *stand_in_path; /* its only one */
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
