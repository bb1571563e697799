/* commands.h - commands that a host sends: an opcode and two arguments make a command that is
 * right. */
#ifndef WEFT_TESTS_PEER_COMMANDS_H
#define WEFT_TESTS_PEER_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/nvme.h"

/* How the arguments a and b and the length of the data go into a command. */
enum form {
	FORM_DWORDS, /* a, b: dwords 10 and 11 */
	FORM_PAGE,   /* the same, and 4096 bytes */
	FORM_BLOCKS, /* a: SLBA, b: NLB and control */
	FORM_LOG,    /* b: dword 11, or the offset if CMD_LONG */
	FORM_FEATURE,
	FORM_DSM,
	FORM_COPY,   /* a: SDLBA, b: dword 12 */
	FORM_KEYS,   /* a: action, type; the data is keys */
	FORM_REPORT, /* a: NUMD, b: EDS */
	FORM_PROPERTY,
	FORM_BYTES,      /* 64 bytes of input are the command */
	FORM_CCR,        /* a: which controller of the first subsystem */
	FORM_LBA_STATUS, /* a: SLBA, b: RL and MNDW */
};

struct form_kind {
	uint8_t opcode, fctype;
	enum form form;
};

/* The @which-th of a few opcodes. */
const struct form_kind *form_kind(uint8_t which);

/* What an operation says of a command; bit 5 is the transport's. */
enum {
	CMD_IN_CAPSULE = 1 << 0,
	CMD_FUSE = 3 << 1,
	CMD_SGL = 1 << 3,  /* a type and a length follow */
	CMD_DATA = 1 << 4, /* a length and the first bytes of the data follow */
	CMD_NO_SGL = 1 << 6,
	CMD_LONG = 1 << 7, /* property of 8 bytes; blocks: the last ones there are; log: from an
			    * offset on; LBA status: another ATYPE; CCR: a and b
			    * are CNTLID, CIU and CIRN */
};

void form_begin(union nvme_sqe *sqe, const struct form_kind *kind, uint8_t flags, uint8_t nsid);
/* Fills in the arguments; returns the bytes of data that belong to the command. */
uint32_t form_fill(union nvme_sqe *sqe, enum form form, uint8_t flags, uint32_t a, uint32_t b);
/* All of that as the input says; the SGL is the caller's. */
uint32_t form_read(union nvme_sqe *sqe, uint8_t *flags);
bool form_is_to_ctrl(const union nvme_sqe *sqe);

/* --- lengths ---------------------------------------------------------------------------------- */

/* A length at, or next to, one where code takes another way. */
uint32_t form_length(uint8_t which);
/* Between which edges it is: at one, above it by a little or by more. */
enum { FORM_LENGTHS = 32 * 3 };
unsigned form_length_class(uint32_t len);
/* An operation: the SGL of the next command, Connect too, says such a length. */
void op_length(void);
void form_take_length(uint32_t *len); /* if there was one */
void form_forget_length(void);

/* --- the first commands of a queue ------------------------------------------------------------ */

struct form_connect {
	uint16_t qid, sqsize, cntlid;
	uint32_t kato;
	uint8_t subsys;
	bool no_flow, in_capsule;
	bool stranger, other_id; /* another host's NQN, another Host Identifier */
};

/* As the input says; @cntlid_of makes a controller of a byte. */
void form_read_connect(struct form_connect *c, uint16_t (*cntlid_of)(uint8_t which));

/* Connect and its data; the SGL is the caller's. */
void form_connect(const struct form_connect *c, union nvme_sqe *sqe,
		  struct nvmf_connect_data *data);
/* CC.EN */
void form_enable(union nvme_sqe *sqe);

#endif
