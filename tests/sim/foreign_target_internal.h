/* foreign_target_internal.h - what the parts of a stranger's target share. */
#ifndef SIM_STRANGER_INTERNAL_H
#define SIM_STRANGER_INTERNAL_H

#include "backend/backend.h"
#include "disk.h"
#include "foreign_target.h"
#include "proto/tcp.h"
#include "scheduler.h"

enum { STRANGER_PORTS = 4, STRANGER_CAPSULE = 8192, STRANGER_QUEUES = 8, STRANGER_DEPTH = 64 };

/* An association. */
struct owner {
	struct weft_list link;
	struct foreign_target *stranger;
	uint16_t cntlid;
	uint32_t cc, csts;
	uint64_t kato_ns;
	bool traffic; /* since it was last looked for */
	bool knows;   /* that its host is gone */
	struct weft_list talks, kept;
	struct sim_event look, end; /* for traffic; of the quiesce time */
};

/* A connection. */
struct talk {
	struct weft_list link; /* the stranger's */
	struct weft_list of_owner;
	struct foreign_target *stranger;
	struct owner *owner; /* NULL: before Connect */
	uint16_t qid;
	int fd;
	bool ready; /* something can be received */
	size_t have;
	char in[sizeof(struct nvme_tcp_cmd) + STRANGER_CAPSULE];
};

struct foreign_target {
	const struct sim_node *sim;
	const struct foreign_kind *kind;
	struct weft_reactor *reactor; /* it gives us our turns, and does nothing else */
	int watch;                    /* epoll, of everything that tells its owner's "ready" */
	int listeners[STRANGER_PORTS];
	bool called[STRANGER_PORTS]; /* ready */
	unsigned nlisteners;
	uint16_t last_cntlid;
	struct weft_list owners, talks;
};

/* foreign_target.c */
void foreign_answer(struct talk *talk, uint16_t cid, uint16_t status, uint64_t result);
void foreign_answer_data(struct talk *talk, uint16_t cid, const void *data, uint32_t length);
struct owner *foreign_own(struct talk *talk, uint32_t kato_ms); /* a new association */
struct owner *foreign_find(const struct foreign_target *s, uint16_t cntlid);
void foreign_join(struct talk *talk, struct owner *owner);
/* It is answered when it is carried out. */
void foreign_keep(struct talk *talk, uint16_t cid, unsigned disk, const struct weft_io *io);

/* foreign_target_cmd.c: a command has come, with @length bytes in its capsule. */
void foreign_command(struct talk *talk, const union nvme_sqe *sqe, const void *data,
		     uint32_t length);

#endif
