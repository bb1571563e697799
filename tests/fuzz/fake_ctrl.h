/* fake_ctrl.h - a controller without a connection: what it would answer comes from the input.
 *
 *   host_admin_start() ─▶ wanted ─▶ fake_ctrl_answer() ─▶ done()
 *   weft_identify(), weft_admin(), weft_log_page(), weft_connect() ─▶ answered at once
 *
 * The linker puts these in the place of the host's own (--wrap): everything above them is real. */
#ifndef WEFT_TESTS_FUZZ_FAKE_CTRL_H
#define WEFT_TESTS_FUZZ_FAKE_CTRL_H

#include "host/internal.h"

extern struct weft_ctrl *fake_ctrl;
extern struct host_path *fake_ctrl_path; /* its only one */
extern bool fake_ctrl_up, fake_ctrl_broken;
extern unsigned fake_ctrl_connects; /* tried */
extern unsigned fake_ctrl_open;     /* connected and not disconnected */

void fake_ctrl_create(void); /* once */
/* As before the first connection. */
void fake_ctrl_reset(void);
/* Answers the oldest command that waits; false: there is none. */
bool fake_ctrl_answer(void);
void fake_ctrl_turn(uint64_t ms);
uint64_t fake_ctrl_clock(void *arg);
/* Whatever waits is lost. */
void fake_ctrl_lose(void);

#endif
