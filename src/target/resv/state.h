/* state.h - the state of a reservation: its registrants, its holder, its notices, and the commands
 * that change it.
 *
 * A registrant is a host, known by its identifier: all its controllers, of all members, are one
 * registrant. A host can make up identifiers; where hosts are listed it cannot make up its NQN. So
 * the registrants with one NQN (their name) are limited, too. The state has a hash of the name: two
 * names with the same hash would share one limit. */
#ifndef WEFT_TARGET_RESV_STATE_H
#define WEFT_TARGET_RESV_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RESV_REGS_MAX = 512,
	RESV_REGS_OF_NAME = 64,
	RESV_NOTICES_MAX = 1024,
	RESV_HOST_BYTES = 16,
	RESV_NAME_BYTES = 7,
};

struct resv_reg {
	uint8_t host[RESV_HOST_BYTES];
	uint8_t name[RESV_NAME_BYTES]; /* hash of the NQN that it registered by; 0: not known */
	uint64_t key;
	bool holder; /* of types other than "all registrants", where each registrant holds it */
};

/* What a host is told, by whichever member it is connected to. */
struct resv_notice {
	uint8_t host[RESV_HOST_BYTES];
	uint8_t type; /* as the log page has it, NVME_RESV_NOTIFY_RNLPT_… */
	bool abort;   /* the host's commands end first */
};

struct resv_state {
	uint32_t generation;
	uint8_t rtype; /* 0: not reserved */
	bool ptpl;     /* persists through a loss of power */
	unsigned nregs, nnotices;
	uint64_t noticed; /* notices that there ever were; those here are the last of them */
	struct resv_reg regs[RESV_REGS_MAX];
	struct resv_notice notices[RESV_NOTICES_MAX];
};

enum resv_kind { RESV_REGISTER, RESV_ACQUIRE, RESV_RELEASE, RESV_PERSIST };

/* A decoded command. */
struct resv_request {
	enum resv_kind kind;
	uint8_t host[RESV_HOST_BYTES], name[RESV_NAME_BYTES];
	uint8_t action; /* RREGA, RACQA, RRELA */
	uint8_t rtype, cptpl;
	bool iekey;
	uint64_t crkey, key; /* @key: NRKEY or PRKEY */
	bool ptpl;           /* RESV_PERSIST: the new value */
	bool can_persist;    /* there is a state file for it */
};

/* rules.c: 0 or an NVMe status; @changed: the state has changed. With a status it has not. Call it
 * only if resv_has_notice_room(). */
uint16_t resv_execute(struct resv_state *st, const struct resv_request *rq, bool *changed);

/* state.c */
bool resv_same_host(const uint8_t *a, const uint8_t *b);
struct resv_reg *resv_find_registrant(struct resv_state *st,
				      const uint8_t *host); /* NULL: no registrant */
bool resv_is_holder(const struct resv_state *st, const struct resv_reg *reg);
bool resv_all_registrants(uint8_t rtype); /* types … */
bool resv_registrants_only(uint8_t rtype);
void resv_establish(struct resv_state *st, struct resv_reg *holder, uint8_t rtype);
void resv_end(struct resv_state *st);
void resv_remove_registrant(struct resv_state *st, unsigned index);
/* Is there room for the notices of any one command? */
bool resv_has_notice_room(const struct resv_state *st);
void resv_notify(struct resv_state *st, const uint8_t *host, uint8_t type, bool abort);
void resv_notify_others(struct resv_state *st, const uint8_t *host, uint8_t type);
void resv_notify_released(struct resv_state *st, const uint8_t *by);

/* record.c: as the store has it */
size_t resv_record_size(const struct resv_state *st);
void resv_record_encode(const struct resv_state *st, uint64_t session, void *bytes);
/* @len 0: there is none. A state that does not persist is empty in another session. -EINVAL: these
 * are not its bytes. */
int resv_record_decode(struct resv_state *st, uint64_t session, const void *bytes, size_t len);

#endif
