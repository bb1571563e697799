/* link_case.h - a link and a scripted controller, on a reactor of the test's own.
 *
 * Every wait turns the reactor, a bounded number of times; its clock is the test's. */
#ifndef WEFT_TESTS_LINK_CASE_H
#define WEFT_TESTS_LINK_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/tcp.h"
#include "transport/tcp/link.h"

#include "running.h"

enum { SETUP_MS = 1000, LINGER_MS = 500, DEPTH = 3, MEMORY = 20000 };

extern struct weft_reactor *r;
extern uint64_t now_ns;
extern int listener, peer; /* the controller's */
extern struct sockaddr_storage addr;

extern struct weft_link *link_;
extern const struct weft_link_ops ops;
extern unsigned readies, dones, closes;
extern struct weft_link_slot last; /* as done() saw it */
extern struct weft_err why;        /* as closed() saw it */
extern int end_rc;
extern bool end_hung_up;

int set_up(void **state);
int tear_down(void **state);
void await(const unsigned *counter);

/* --- a connection ----------------------------------------------------------------------------- */

void open_link(uint8_t dgst);                /* up to ICReq */
void open_ready(uint8_t dgst, uint8_t cpda); /* up to ready() */
void close_link(void);
/* The link tells what was wrong, and ends; @peer has not closed. */
void expect_term(const char *name, uint16_t fes, uint32_t fei, const char *sentence);

/* --- the controller --------------------------------------------------------------------------- */

void ctrl_recv(void *to, size_t len); /* bytes that the link sends */
void ctrl_send(const void *bytes, size_t len);
void ctrl_send_icresp(uint16_t pfv, uint8_t cpda, uint8_t dgst, uint32_t maxh2c);

/* --- commands --------------------------------------------------------------------------------- */

extern char memory[MEMORY]; /* theirs */

enum kind { NOTHING, READ_512, READ_20000, WRITE_512, WRITE_20000 };

uint16_t submit(enum kind kind); /* its CID */
/* Its capsule, as it should be. */
void ctrl_recv_capsule(enum kind kind, uint16_t cid, uint8_t dgst);

#endif
