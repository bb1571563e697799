/* path_wait.h - print a message while a command waits for a path, or for an answer through one, so
 * that it does not seem to hang.
 *
 *   no path ─ 1 s ─▶ "waiting 1 s for a path to …" ─ every 10 s ─▶ …
 *       ─▶ "there is a path again, after 12 s"
 *   in flight, none answered ─ 1 s ─▶ "waiting 1 s for an answer to Read: …" ─ every 10 s ─▶ …
 *
 * One thread polls all waits that were begun: most commands wait inside the library. It only
 * prints; the library has the time limits (weft_host_apply_limits()). */
#ifndef WEFT_CLI_PATH_WAIT_H
#define WEFT_CLI_PATH_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weft/host.h>

#include "base/list.h"

struct weft_path_wait {
	const char *command;    /* NULL: nothing is printed */
	const char *uri;        /* as the user wrote it */
	const char *awaited;    /* of @uri, without @ctrl; NULL: "a connection to" */
	struct weft_ctrl *ctrl; /* NULL: it is being connected to */
	struct weft_ns *ns;     /* whose I/O waits; NULL: any live path will do */
	uint32_t connect_ms, loss_ms, fast_io_fail_ms; /* how long for; 0: for ever */
	uint32_t io_ms;                                /* for an answer */

	/* What was sent and is not answered; any thread. */
	const char *_Atomic asked; /* "Read"; NULL: an admin command */
	atomic_uint in_flight;
	atomic_ullong answered; /* so far */

	/* path_wait.c's. */
	struct weft_list link;
	double since_s, next_s; /* since when there is no path; when to print. 0: there is one */
	bool told;
	double silent_s,
		repeat_s;        /* since when there is no answer; when to print. 0: there is one */
	unsigned long long seen; /* @answered by then */
};

void weft_path_wait_begin(struct weft_path_wait *waiting);
/* After this returns its controller and namespace are not used any more. Also for one that has not
 * begun. */
void weft_path_wait_end(struct weft_path_wait *waiting);

/* A command was sent, or is about to be; and was answered, or has failed. Any thread. @what: "Read",
 * a constant; NULL: an admin command. */
void weft_path_wait_asked(struct weft_path_wait *waiting, const char *what);
void weft_path_wait_answered(struct weft_path_wait *waiting);
/* The same, by one thread that counts. */
void weft_path_wait_progress(struct weft_path_wait *waiting, const char *what, unsigned in_flight,
			     unsigned long long answered);

enum { WEFT_PATH_WAIT_TEXT = 1024 };

/* One poll, for a caller that has a thread for it: true: print @text. */
bool weft_path_wait_poll(struct weft_path_wait *waiting, double now_s,
			 char text[WEFT_PATH_WAIT_TEXT]);

/* Whether I/O to @ns has a usable path. */
bool weft_has_path(struct weft_ns *ns);

/* --- for tests -------------------------------------------------------------------------------- */

/* Its paths as the library reports them. @through: of the namespace, or NULL. */
struct weft_path_wait_paths {
	unsigned count;
	struct weft_path_info paths[WEFT_PATHS_MAX];
	const struct weft_ns_path *through;
};

bool weft_path_wait_usable(const struct weft_path_wait_paths *paths);
/* @usable: one of the paths is. true: it is time to print something. */
bool weft_path_wait_due(struct weft_path_wait *waiting, bool usable, double now_s);
/* Whether it is time to print that nothing in flight is answered. */
bool weft_path_wait_silent(struct weft_path_wait *waiting, double now_s);
/* "127.0.0.1:4420 inaccessible (ANA group 1), 127.0.0.1:4421 reconnecting: Connection refused" */
void weft_path_wait_why(const struct weft_path_wait_paths *paths, char *text, size_t size);

#endif
