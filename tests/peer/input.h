/* input.h - a fuzzer's bytes as numbers, little endian; zeroes when there are no more. */
#ifndef WEFT_TESTS_PEER_INPUT_H
#define WEFT_TESTS_PEER_INPUT_H

#include <stddef.h>
#include <stdint.h>

void input_set(const uint8_t *data, size_t size);
size_t input_left(void);

uint8_t u8(void);
uint16_t u16(void);
uint32_t u32(void);
uint64_t u64(void);
/* 16 bits of length; the highest of @flags makes it four times as much. */
uint32_t input_length(uint8_t flags);

/* Up to @want bytes, where they are; *@len says how many there are. */
const uint8_t *input_take(size_t want, uint32_t *len);
/* At most @most bytes of @size; the rest of them is zeroes. */
void input_bytes(void *to, size_t size, size_t most);

#endif
