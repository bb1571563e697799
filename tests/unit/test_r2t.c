/* test_r2t.c - how a command's data is split into R2Ts: every length that a host may name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/tcp/tcp.h"

/* Behind what a split of @most may write there is a mark. */
static void check_split(uint32_t len, uint32_t most)
{
	struct tcp_r2t r2ts[TCP_R2TS_MAX + 1];
	const struct tcp_r2t mark = { 0xdeadbeef, 0xdeadbeef };
	uint32_t at = 0, n;

	for (uint32_t i = 0; i <= TCP_R2TS_MAX; i++)
		r2ts[i] = mark;
	n = tcp_r2t_split(r2ts, most, len);
	assert_in_range(n, 1, most);
	assert_memory_equal(&r2ts[n], &mark, sizeof(mark));
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(r2ts[i].offset, at);
		assert_int_not_equal(r2ts[i].left, 0);
		at += r2ts[i].left;
	}
	assert_int_equal(at, len);
}

static void every_length(void **state)
{
	(void)state;
	for (uint32_t most = 1; most <= TCP_R2TS_MAX; most++)
		for (uint32_t len = 1; len <= WEFT_MDTS_BYTES; len++)
			check_split(len, most);
}

/* A part that is not the last ends at a page: storage likes it. */
static void whole_pages(void **state)
{
	struct tcp_r2t r2ts[TCP_R2TS_MAX];

	(void)state;
	for (uint32_t len = 4; len <= WEFT_MDTS_BYTES; len += 4) {
		uint32_t n = tcp_r2t_split(r2ts, TCP_R2TS_MAX, len);

		for (uint32_t i = 0; i + 1 < n; i++) {
			assert_int_equal(r2ts[i].left % 4096, 0);
			assert_true(r2ts[i].left >= TCP_R2T_MIN);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(whole_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
