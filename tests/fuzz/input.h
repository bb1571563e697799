/* input.h - a fuzzer's bytes as numbers, little endian; zeroes when there are no more. */
#ifndef WEFT_FUZZ_INPUT_H
#define WEFT_FUZZ_INPUT_H

#include <stdint.h>

static const uint8_t *input, *input_end;

static inline uint8_t u8(void)
{
	return input < input_end ? *input++ : 0;
}

static inline uint16_t u16(void)
{
	uint16_t low = u8();

	return (uint16_t)(low | u8() << 8);
}

static inline uint32_t u32(void)
{
	uint32_t low = u16();

	return low | (uint32_t)u16() << 16;
}

#endif
