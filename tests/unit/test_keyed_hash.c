/* test_keyed_hash.c - the hash is SipHash, spreads what hosts choose, and its key cannot be guessed
 * where the kernel refuses or delays random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>

#include "base/addr_counts.h"
#include "base/keyed_hash.h"
#include "running.h"

/* --- a kernel that has no random bytes, or has them late -------------------------------------- */

ssize_t __real_getrandom(void *buf, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t length, unsigned flags);
unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

static int error; /* of getrandom(); 0: it works */
static unsigned interruptions, given_at_start;
static const uint8_t bytes_at_start[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

ssize_t __wrap_getrandom(void *buf, size_t length, unsigned flags)
{
	assert_int_equal(flags, 0); /* it waits */
	if (interruptions) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	if (error) {
		errno = error;
		return -1;
	}
	return __real_getrandom(buf, length, flags);
}

unsigned long __wrap_getauxval(unsigned long type)
{
	if (type != AT_RANDOM)
		return __real_getauxval(type);
	given_at_start++;
	return (unsigned long)bytes_at_start;
}

static void keys_are_random(void **state)
{
	struct weft_hash_key one = weft_hash_key(), other = weft_hash_key();

	assert_memory_not_equal(&one, &other, sizeof(one));
	assert_int_equal(given_at_start, 0);
}

static void a_signal_does_not_make_a_key_weaker(void **state)
{
	interruptions = 3;
	weft_hash_key();
	assert_int_equal(interruptions, 0);
	assert_int_equal(given_at_start, 0);
}

static void a_key_is_never_the_time(void **state)
{
	struct weft_hash_key key;

	error = ENOSYS;
	key = weft_hash_key();
	error = 0;
	assert_memory_equal(&key, bytes_at_start, sizeof(key));
}

/* --- the hash --------------------------------------------------------------------------------- */

/* SipHash's paper and reference: the key is 00 01 … 0f, the input 00 01 …, @len bytes of it. */
static void it_is_siphash(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
		{ 0, 0x726fdb47dd0e0e31 },
		{ 1, 0x74f839c593dc67fd },
		{ 8, 0x93f5f5799a932462 },
		{ 15, 0xa129ca6149be45e5 },
	};
	const struct weft_hash_key key = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	uint8_t input[15];

	for (uint8_t i = 0; i < sizeof(input); i++)
		input[i] = i;
	for_each_row(i, vectors)
		assert_int_equal(weft_keyed_hash(&key, input, vectors[i].len), vectors[i].hash);
}

/* Of identifiers that differ in one word of theirs alone, by a table's size, a peer may send as many
 * as it likes. */
static void what_a_table_apart_is_not_in_one_place(void **state)
{
	enum { PLACES = 64, EACH = 64, MOST = 3 * EACH };

	for (size_t word = 0; word < 4; word++) {
		struct weft_hash_key key = weft_hash_key();
		unsigned places[PLACES] = { 0 };
		uint32_t hostid[4] = { 0 };

		for (uint32_t i = 0; i < PLACES * EACH; i++) {
			hostid[word] = i * PLACES;
			places[weft_keyed_hash(&key, hostid, sizeof(hostid)) % PLACES]++;
		}
		for (unsigned i = 0; i < PLACES; i++)
			assert_in_range(places[i], 1, MOST);
	}
}

static struct sockaddr_storage ip4(uint32_t address)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct sockaddr_storage addr = { 0 };

	memcpy(&addr, &in, sizeof(in));
	return addr;
}

static struct sockaddr_storage ip6(uint8_t subnet, uint8_t machine)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	struct sockaddr_storage addr = { 0 };

	in.sin6_addr.s6_addr[0] = 0xfd;
	in.sin6_addr.s6_addr[7] = subnet;
	in.sin6_addr.s6_addr[15] = machine;
	memcpy(&addr, &in, sizeof(in));
	return addr;
}

/* Hosts of one network of storage do not share a counter with each other. */
static void neighbours_have_their_own(void **state)
{
	bool seen4[WEFT_ADDR_COUNTERS] = { 0 }, seen6[WEFT_ADDR_COUNTERS] = { 0 };
	struct weft_addr_counts counts;
	struct sockaddr_storage addr, same;

	weft_addr_counts_init(&counts);
	for (unsigned i = 0; i < WEFT_ADDR_COUNTERS; i++) {
		addr = ip4(0x0a000500 + i);
		seen4[weft_addr_counts_index(&counts, &addr)] = true;
		addr = ip6((uint8_t)i, 1);
		same = ip6((uint8_t)i, 2);
		seen6[weft_addr_counts_index(&counts, &addr)] = true;
		assert_int_equal(weft_addr_counts_index(&counts, &addr),
				 weft_addr_counts_index(&counts, &same));
	}
	for (unsigned i = 0; i < WEFT_ADDR_COUNTERS; i++)
		assert_true(seen4[i] && seen6[i]);
}

/* Which addresses of two networks meet is another matter with every key. */
static void networks_meet_at_random(void **state)
{
	const struct sockaddr_storage one = ip4(0x0a000507), other = ip4(0x0a000607);
	unsigned first, apart = 0;
	struct weft_addr_counts counts;

	weft_addr_counts_init(&counts);
	first = weft_addr_counts_index(&counts, &one) - weft_addr_counts_index(&counts, &other);
	for (unsigned i = 0; i < 64; i++) {
		weft_addr_counts_init(&counts);
		apart += weft_addr_counts_index(&counts, &one) -
				 weft_addr_counts_index(&counts, &other) !=
			 first;
	}
	assert_in_range(apart, 32, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_random),
		cmocka_unit_test(a_signal_does_not_make_a_key_weaker),
		cmocka_unit_test(a_key_is_never_the_time),
		cmocka_unit_test(it_is_siphash),
		cmocka_unit_test(what_a_table_apart_is_not_in_one_place),
		cmocka_unit_test(neighbours_have_their_own),
		cmocka_unit_test(networks_meet_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
