/* opcodes.h - the names of commands. */
#ifndef WEFT_CLI_OPCODES_H
#define WEFT_CLI_OPCODES_H

#include <stdbool.h>
#include <stdint.h>

/* "Get Log Page"; "Unknown" where the specification has none. A constant, never NULL. */
const char *weft_opcode_text(bool admin, uint8_t opcode);

#endif
