/* internal.h - the reactor's body, for the files of this folder. */
#ifndef WEFT_REACTOR_INTERNAL_H
#define WEFT_REACTOR_INTERNAL_H

#include <errno.h>
#include <stdalign.h>

#include "reactor/engine.h"
#include "reactor/spin.h"
#include "reactor/mailbox.h"
#include "reactor/reactor.h"

struct weft_reactor {
	struct weft_reactor_options options;
	struct engine *engine;
	struct weft_list queued;    /* operations that the next wait starts */
	struct weft_list completed; /* operations whose done() the next turn calls */
	struct weft_list tasks;
	struct weft_list bulk;          /* flows whose tasks wait for a part of a turn */
	struct weft_list bulk_full;     /* flows that wait until pieces under way have ended */
	struct weft_list bulk_retries;  /* tasks that had their turn, and could not use it */
	unsigned pieces;                /* of bulk work, under way in storage */
	struct weft_list pollers;       /* to be polled */
	struct weft_list ready_pollers; /* pollers whose process() the next turn calls */
	struct weft_heap timers;
	struct weft_spin spin;
	uint64_t now_ns;
	int64_t bulk_left; /* bytes of bulk work that this turn may still do */
	bool turning;      /* in a turn: now_ns is valid */
	bool firing;       /* in a timer's callback */
	bool stopping;
	const void *thread; /* an address of the thread that ran the last turn; NULL: none has */
	bool driven;        /* that thread is inside weft_reactor_run() or weft_reactor_turn() */
	bool pollers_ran;   /* in the last turn */
	bool got_message;   /* since an engine last polled all sockets */
	unsigned turns_since_engine; /* turns since the engine was last called */
	uint64_t alarm_ns;           /* when the engine's alarm is set for; 0: it is not */

	/* The only part that other threads touch. */
	alignas(64) struct weft_mailbox mailbox;
};

/* The lone socket: while only one socket talks, an engine makes its system calls directly. Polling
 * or arming first would pay only with several sockets. */
struct weft_lone_sock {
	struct weft_sock *sock; /* received last; NULL: none, or it is closed */
	bool alone;             /* … and before that, too */
};

static inline void weft_lone_sock_note(struct weft_lone_sock *lone, struct weft_sock *sock)
{
	lone->alone = lone->sock == sock;
	lone->sock = sock;
}

static inline void weft_lone_sock_forget(struct weft_lone_sock *lone, const struct weft_sock *sock)
{
	if (lone->sock == sock)
		*lone = (struct weft_lone_sock){ 0 };
}

/* Marks an operation that is queued or with the engine. */
#define WEFT_OP_UNDER_WAY (-EINPROGRESS)

static inline bool weft_op_under_way(const struct weft_op *op)
{
	return op && op->res == WEFT_OP_UNDER_WAY;
}

/* Is it in sock->tx, not in sock->rx? */
static inline bool weft_op_is_send(const struct weft_op *op)
{
	return op->kind == WEFT_OP_SEND || op->kind == WEFT_OP_SEND_NOWAIT ||
	       op->kind == WEFT_OP_POLL_OUT;
}

/* The socket is not ready, and the operation waits until it is. */
static inline bool weft_op_would_block(const struct weft_op *op, int res)
{
	return res == -EAGAIN && op->kind != WEFT_OP_SEND_NOWAIT;
}

static inline void weft_op_complete(struct weft_reactor *r, struct weft_op *op, int res)
{
	op->res = res;
	weft_list_push(&r->completed, &op->link);
}

/* The system call of an operation on a socket, without waiting: what it returned, or -errno. */
int weft_op_try(struct weft_op *op);
/* Calls done() of everything on r->completed. */
void weft_op_finish_all(struct weft_reactor *r);

uint64_t weft_clock_ns(const struct weft_reactor *r);
/* Returns when a turn is due, after @limit_ns at most (-1: nothing bounds it), or early. */
void weft_reactor_wait(struct weft_reactor *r, int64_t limit_ns);

static inline bool weft_bulk_waits(const struct weft_reactor *r)
{
	return !weft_list_empty(&r->bulk) || !weft_list_empty(&r->bulk_retries);
}
/* Runs as many bulk tasks as this turn has room for. */
void weft_bulk_run(struct weft_reactor *r);

/* true: a poller is ready. */
bool weft_pollers_poll(struct weft_reactor *r);
/* Polls, then calls process() of the ready ones. true: there were some. */
bool weft_pollers_process(struct weft_reactor *r);
/* false: do not sleep. */
bool weft_pollers_arm(struct weft_reactor *r);

#endif
