/* input.c - commands that bring data: checked before it is asked for, and again when it is here.
 *
 *   look the namespace up, check ─▶ fetch (the host takes its time) ─▶ enter, check again ─▶ run
 *
 * Between the two the namespace may have gone, shrunk, or become one that is not reached this
 * way. */
#include "target/io/io.h"

static void enter(struct weft_req *req)
{
	const struct tgt_input *input = tgt_req(req)->input;
	struct tgt_ns *ns = tgt_ns_enter(req, input->writer, enter);
	uint16_t sc;

	if (!ns)
		return;
	sc = input->after(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else
		input->run(req);
}

static void fetched(struct weft_req *req, uint16_t sc)
{
	tgt_req(req)->host_data = req->data;
	if (sc)
		tgt_io_finish(req, sc);
	else
		enter(req);
}

static void fetch(struct weft_req *req)
{
	weft_req_fetch(req, tgt_req(req)->length, fetched);
}

void tgt_io_input(struct weft_req *req, const struct tgt_input *input)
{
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_check(req, &ns);

	tgt_req(req)->input = input;
	if (!sc)
		sc = input->before(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else if (input->list)
		tgt_io_list(req, fetch);
	else
		fetch(req);
}
