/* uring_setup.h - an io_uring that fits this kernel. */
#ifndef WEFT_REACTOR_URING_SETUP_H
#define WEFT_REACTOR_URING_SETUP_H

#include <liburing.h>

#include "base/err.h"

/* Disabled: the thread that is going to use it enables it. */
int weft_uring_setup(struct io_uring *ring, struct weft_err *err);

#endif
