/* test_link.c - how a link and its controller come together and part, and what is told of it. */
#include "link_case.h"
#include "running.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- ICResp ----------------------------------------------------------------------------------- */

static const struct {
	uint16_t pfv;
	uint8_t asked, cpda, dgst;
	uint32_t maxh2c;
	uint16_t fes; /* 0: accepted */
	uint32_t fei;
	const char *sentence;
} icresps[] = {
	{ 0, 0, 0, 0, 4096, 0, 0, "" },
	{ 0, 3, 31, 3, UINT32_MAX, 0, 0, "" },
	{ 3, 0, 0, 0, 4096, NVME_TCP_FES_UNSUPPORTED, 8, "ICResp: target wants PFV 3" },
	{ 0, 0, 32, 0, 4096, NVME_TCP_FES_FIELD, 10, "ICResp: CPDA is above 31" },
	{ 0, 0, 0, 0, 4095, NVME_TCP_FES_FIELD, 12, "ICResp: MAXH2CDATA is below 4096" },
	{ 0, 0, 0, 1, 4096, NVME_TCP_FES_UNSUPPORTED, 11,
	  "ICResp: the target does digests that nobody asked for" },
	{ 0, 3, 0, 1, 4096, NVME_TCP_FES_UNSUPPORTED, 11,
	  "ICResp: the target does not do the digests asked for; leave out hdgst and ddgst" },
};

static void icresp(void **state)
{
	for_each_named(i, icresps, sentence) {
		open_link(icresps[i].asked);
		ctrl_send_icresp(icresps[i].pfv, icresps[i].cpda, icresps[i].dgst,
				 icresps[i].maxh2c);
		if (icresps[i].fes) {
			expect_term(icresps[i].sentence, icresps[i].fes, icresps[i].fei,
				    icresps[i].sentence);
			assert_int_equal(readies, 0);
		} else {
			await(&readies);
			close_link();
		}
	}
}

static void silence(void **state)
{
	open_link(0);
	now_ns += SETUP_MS * UINT64_C(1000000);
	await(&closes);
	assert_int_equal(end_rc, -ETIMEDOUT);
	assert_string_equal(why.text,
			    "no ICResp within 1000 ms: something listens there that does not "
			    "answer as an NVMe/TCP target");
	close(peer);
}

static void nobody(void **state)
{
	struct weft_link_options options = { .addr = addr, .depth = 1, .setup_ms = SETUP_MS };

	((struct sockaddr_in *)&options.addr)->sin_port = htons(1);
	closes = 0;
	assert_int_equal(weft_tcp_link.open(&link_, r, &options, &ops, NULL, NULL), 0);
	await(&closes);
	assert_int_equal(end_rc, -ECONNREFUSED);
	assert_string_equal(why.text, "connect: Connection refused");
}

/* Whoever listens there may speak anything; @said in the place of an ICResp. */
static void another_protocol(const char *said, size_t length, int rc, const char *sentence)
{
	open_link(0);
	if (length)
		ctrl_send(said, length);
	close(peer);
	await(&closes);
	assert_int_equal(end_rc, rc);
	assert_string_equal(why.text, sentence);
}

static void no_nvme(void **state)
{
	another_protocol(
		"SSH-2.0-OpenSSH_9.2\r\n", 21, -EPROTO,
		"what listens there does not speak NVMe/TCP: it began with \"SSH-2.0-\", not "
		"with an ICResp");
	another_protocol(
		"HTTP/1.1 400 Bad Request\r\n\r\n", 28, -EPROTO,
		"what listens there does not speak NVMe/TCP: it began with \"HTTP/1.1\", not "
		"with an ICResp");
	another_protocol("\x15\x03\x01\0\2\2\x46\0", 8, -EPROTO,
			 "what listens there does not speak NVMe/TCP: it began with a byte 0x15, not "
			 "with an ICResp");
	another_protocol(NULL, 0, -ECONNRESET,
			 "the target closed the connection before it had answered with an ICResp");
}

/* --- the end ---------------------------------------------------------------------------------- */

static void target_terminates(void **state)
{
	struct nvme_tcp_term term = {
		.hdr = { NVME_TCP_C2H_TERM, 0, 24, 0, cpu_to_le32(24) },
		.fes = cpu_to_le16(NVME_TCP_FES_HDGST),
		.feil = cpu_to_le16(0x20),
	};

	open_ready(0, 0);
	submit(READ_512);
	ctrl_send(&term, sizeof(term));
	await(&closes);
	assert_int_equal(dones, 0);
	assert_int_equal(end_rc, -EPROTO);
	assert_string_equal(why.text, "the target ended the connection: header digest error "
				      "(C2HTermReq, FES 3, FEI 32)");
	assert_true(end_hung_up);
	close(peer);
}

static void target_leaves(void **state)
{
	open_ready(0, 0);
	submit(READ_512);
	close(peer);
	await(&closes);
	assert_int_equal(dones, 0);
	assert_int_equal(end_rc, -ECONNRESET);
	assert_string_equal(why.text, "the target closed the connection");
	assert_true(end_hung_up);
}

static void target_resets(void **state)
{
	const struct linger abortive = { 1, 0 };

	open_ready(0, 0);
	submit(READ_512);
	assert_return_code(setsockopt(peer, SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive)), 0);
	close(peer);
	await(&closes);
	assert_int_equal(end_rc, -ECONNRESET);
	assert_true(end_hung_up);
}

/* It ends what it is told of: so it knows. */
static void target_leaves_when_told(void **state)
{
	struct nvme_tcp_resp stray = { .hdr = { NVME_TCP_RESP, 0, 24, 0, cpu_to_le32(24) } };
	struct nvme_tcp_term term;
	uint16_t cid;

	open_ready(0, 0);
	cid = submit(READ_512);
	ctrl_recv_capsule(READ_512, cid, 0);
	stray.cqe.cid = cpu_to_le16((uint16_t)~cid);
	ctrl_send(&stray, sizeof(stray));
	ctrl_recv(&term, offsetof(struct nvme_tcp_term, rsvd));
	close(peer);
	await(&closes);
	assert_int_equal(end_rc, -EPROTO);
	assert_true(end_hung_up);
}

/* Slots are limited; those not submitted can be put back. */
static void slots(void **state)
{
	struct weft_link_slot *taken[DEPTH];

	open_ready(0, 0);
	for (int i = 0; i < DEPTH; i++) {
		taken[i] = weft_link_get_slot(link_);
		assert_non_null(taken[i]);
	}
	assert_null(weft_link_get_slot(link_));
	weft_link_put_slot(link_, taken[1]);
	assert_ptr_equal(weft_link_get_slot(link_), taken[1]);
	close_link();
	assert_int_equal(end_rc, -ESHUTDOWN);
	assert_string_equal(why.text, "over");
	assert_false(end_hung_up);
}

/* FFFFh is no command's: in the error log it stands for none. A link of one slot counts through
 * all. */
static void no_cid_ffff(void **state)
{
	struct weft_link_options options = { .addr = addr, .depth = 1, .setup_ms = SETUP_MS };
	struct weft_link_slot *slot;

	closes = 0;
	assert_int_equal(weft_tcp_link.open(&link_, r, &options, &ops, NULL, NULL), 0);
	peer = accept(listener, NULL, NULL);
	for (uint32_t i = 0; i <= 2 * UINT16_MAX; i++) {
		slot = weft_link_get_slot(link_);
		assert_int_not_equal(le16_to_cpu(slot->cmd.common.cid), 0xffff);
		weft_link_put_slot(link_, slot);
	}
	close_link();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(icresp),
		cmocka_unit_test(silence),
		cmocka_unit_test(nobody),
		cmocka_unit_test(no_nvme),
		cmocka_unit_test(target_terminates),
		cmocka_unit_test(target_leaves),
		cmocka_unit_test(target_resets),
		cmocka_unit_test(target_leaves_when_told),
		cmocka_unit_test(slots),
		cmocka_unit_test(no_cid_ffff),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
