/* backend_case.h - a backend on a reactor of the test's own, and a folder for its files.
 *
 * I/O is done when do_io() returns: it turns the reactor, a bounded number of times. */
#ifndef WEFT_TESTS_BACKEND_CASE_H
#define WEFT_TESTS_BACKEND_CASE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "backend/backend.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#include "running.h"

extern struct weft_reactor *reactor; /* NULL: this kernel has no such engine */
extern char dir[64];

/* --- set-ups of a group ----------------------------------------------------------------------- */

int make_dir(void **state);
int remove_dir(void **state);
int start_epoll(void **state);
int start_uring(void **state);
int stop(void **state);

void skip_because(const char *why);
void need_reactor(void);
void need_root(void);

/* --- backends --------------------------------------------------------------------------------- */

/* One of the last few; nobody's to free. */
const char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int try_open(struct weft_backend **be, const char *spec_text, struct weft_err *err);
struct weft_backend *open_spec(const char *spec_text);
void assert_refused(const char *spec_text, int rc, const char *sentence);
void resize_ok(struct weft_backend *be, uint64_t size);

off_t file_size(const char *path); /* -1: there is none */
void make_file(const char *path, off_t size);

/* --- I/O -------------------------------------------------------------------------------------- */

struct job {
	struct weft_msg msg;
	struct weft_backend *be;
	struct weft_io io;
	bool ended;
	int rc;
};

void job_done(struct weft_io *io, int rc);
void job_submit(struct weft_msg *msg); /* on the reactor */

int do_io(struct weft_backend *be, enum weft_io_kind kind, unsigned flags, void *buf,
	  uint64_t offset, uint64_t length);

/* What was written last, and what was read. */
extern unsigned char data[4 * MIB], got[4 * MIB];

void fill(uint64_t length, unsigned seed); /* data */
void read_at(struct weft_backend *be, uint64_t offset, uint64_t length);
void write_at(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed);
void assert_data(struct weft_backend *be, uint64_t offset, uint64_t length, unsigned seed);
void assert_zeroes(struct weft_backend *be, uint64_t offset, uint64_t length);
void assert_durable(struct weft_backend *be);
void assert_not_durable(struct weft_backend *be);
/* Writes, reads and erases, on 8 MiB of zeroes. */
void try_backend(struct weft_backend *be);

#endif
