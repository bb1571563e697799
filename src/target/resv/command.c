/* command.c - the commands that change a reservation: Register, Acquire, Release.
 *
 *   reactor: fetch data ─▶ control reactor: decode ─▶ change queue (change_queue.c) ─▶ reply */
#include <string.h>

#include "target/io/io.h"
#include "target/resv/change_queue.h"
#include "target/resv/resv.h"

void tgt_resv_set_persist(struct weft_req *req, bool ptpl)
{
	const struct resv_request rq = { .kind = RESV_PERSIST, .ptpl = ptpl };

	tgt_resv_submit_change(req, &rq);
}

static const struct command {
	uint8_t opcode;
	enum resv_kind kind;
	uint32_t length;
} commands[] = {
	{ nvme_cmd_resv_register, RESV_REGISTER, 16 },
	{ nvme_cmd_resv_acquire, RESV_ACQUIRE, 16 },
	{ nvme_cmd_resv_release, RESV_RELEASE, 8 },
};

static const struct command *resv_command_of(const struct weft_req *req)
{
	const struct command *command = commands;

	while (command->opcode != req->cmd.common.opcode)
		command++;
	assert(command < commands + sizeof(commands) / sizeof(commands[0]));
	return command;
}

static void resv_change_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	const struct command *command = resv_command_of(req);
	uint32_t cdw10 = le32_to_cpu(req->cmd.common.cdw10);
	__le64 keys[2] = { 0 };
	struct resv_request rq = {
		.kind = command->kind,
		.action = cdw10 & 7,
		.iekey = cdw10 >> 3 & 1,
		.rtype = cdw10 >> 8 & 0xff,
		.cptpl = cdw10 >> 30,
	};

	assert(req->data_len >= command->length && command->length <= sizeof(keys));
	memcpy(keys, req->data, command->length);
	rq.crkey = le64_to_cpu(keys[0]);
	rq.key = le64_to_cpu(keys[1]);
	tgt_resv_submit_change(req, &rq);
}

static void resv_fetched(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_post_control(req, resv_change_on_control);
}

void tgt_resv_change(struct weft_req *req)
{
	uint32_t length = resv_command_of(req)->length;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);

	if (!sc)
		sc = weft_req_check_sgl(req, length);
	if (sc)
		tgt_io_finish(req, sc);
	else
		weft_req_fetch(req, length, resv_fetched);
}
