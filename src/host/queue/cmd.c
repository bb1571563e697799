/* cmd.c - the states of a command, from weft_submit() to done().
 *
 *             ┌──────────── all of it at once ─────────────┐
 *   IDLE ─────┴─▶ WAITING ─ its last piece is issued ─▶ SENT ─ back ─▶ DONE ─▶ the program
 *                  ▲  │ ▲                                │ │
 *                  │  │ └── DELAYED ◀ a status asks for ─┘ │ lost, and it writes
 *                  │  ▼                 a retry            ▼
 *                  └ REQUEUED: no path now               FENCED ─ the association is over ─▶ WAITING
 *
 * A command leaves WAITING or REQUEUED as it leaves SENT, if a piece has failed before all were
 * issued. From every state but IDLE it may end.
 *
 * Invariant: a command is on the list of its state, or on none if its state has none; pieces are in
 * flight in WAITING, REQUEUED and SENT only. */
#include "host/queue/cmd.h"

void cmd_enter_all(struct weft_list *list, enum cmd_state state)
{
	for (struct weft_list *link = list->next; link != list; link = link->next) {
		struct cmd_priv *p = cmd_priv(cmd_of(link));

		assert(cmd_may_enter(p, state) && cmd_is_listed(p));
		p->state = (uint8_t)state;
	}
}

static struct weft_list *enter_listed(struct weft_cmd *cmd, enum cmd_state state)
{
	cmd_enter(cmd, state);
	assert(cmd_is_listed(cmd_priv(cmd)));
	assert(!cmd_priv(cmd)->ninflight || state == CMD_WAITING || state == CMD_REQUEUED);
	return &cmd_priv(cmd)->link;
}

void cmd_queue(struct weft_cmd *cmd, enum cmd_state state, struct weft_list *list)
{
	weft_list_push(list, enter_listed(cmd, state));
}

void cmd_queue_first(struct weft_cmd *cmd, enum cmd_state state, struct weft_list *list)
{
	weft_list_push_first(list, enter_listed(cmd, state));
}
