/* write_data.c - commands that bring data: they are checked before the data is fetched, and again
 * when it is here.
 *
 *   look the namespace up, check ─▶ fetch (the host takes its time) ─▶ enter, check again ─▶ run
 *
 * Between the two the namespace may go, shrink, or become inaccessible through this path. */
#include "target/io/io.h"

static void write_data_enter_ns(struct weft_req *req)
{
	const struct tgt_write_data_ops *input = tgt_req(req)->input;
	struct tgt_ns *ns = tgt_ns_enter(req, input->writer, write_data_enter_ns);
	uint16_t sc;

	if (!ns)
		return;
	sc = input->check_data(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else
		input->execute(req);
}

static void write_data_fetched(struct weft_req *req, uint16_t sc)
{
	tgt_req(req)->host_data = req->data;
	if (sc)
		tgt_io_finish(req, sc);
	else
		write_data_enter_ns(req);
}

static void write_data_fetch(struct weft_req *req)
{
	weft_req_fetch(req, tgt_req(req)->length, write_data_fetched);
}

void tgt_io_write_data(struct weft_req *req, const struct tgt_write_data_ops *input)
{
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_check(req, &ns);

	tgt_req(req)->input = input;
	if (!sc)
		sc = input->check_command(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else if (input->list && !req->data)
		tgt_limit_admit(req, write_data_fetch);
	else
		write_data_fetch(req);
}
