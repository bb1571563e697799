/* input.c - a fuzzer's bytes as numbers. */
#include "peer/input.h"

#include <string.h>

static const uint8_t *input, *input_end;

void input_set(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
}

size_t input_left(void)
{
	return (size_t)(input_end - input);
}

uint8_t u8(void)
{
	return input < input_end ? *input++ : 0;
}

uint16_t u16(void)
{
	uint16_t low = u8();

	return (uint16_t)(low | u8() << 8);
}

uint32_t u32(void)
{
	uint32_t low = u16();

	return low | (uint32_t)u16() << 16;
}

uint64_t u64(void)
{
	uint64_t low = u32();

	return low | (uint64_t)u32() << 32;
}

uint32_t input_length(uint8_t flags)
{
	return u16() * (flags & 0x80 ? 4u : 1u);
}

const uint8_t *input_take(size_t want, uint32_t *len)
{
	const uint8_t *at = input;

	*len = (uint32_t)(want < input_left() ? want : input_left());
	input += *len;
	return at;
}

void input_bytes(void *to, size_t size, size_t most)
{
	uint32_t len;
	const uint8_t *at = input_take(most < size ? most : size, &len);

	memset(to, 0, size);
	memcpy(to, at, len);
}
