/* faulty_adapter.c - the fabric as the code under test sees it. */
#include "fabric/faulty_adapter.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "must.h"

/* What may fail for reasons of its own. To let go of things does not. */
/* clang-format off */
#define FALLIBLE(X)                                                                          \
	X(create_event_channel) X(create_id) X(migrate_id) X(bind_addr) X(listen)            \
	X(resolve_addr) X(resolve_route) X(connect) X(accept) X(reject) X(disconnect)        \
	X(create_qp) X(query_device) X(query_port) X(query_gid) X(alloc_pd) X(reg_mr)        \
	X(create_comp_channel) X(create_cq) X(req_notify_cq) X(create_srq) X(post_srq_recv)  \
	X(post_recv) X(post_send) X(query_qp) X(modify_qp)
/* clang-format on */

enum { ROUNDS_MAX = 20000, RESTORES_MAX = 16 };

#define NUMBER(name) ENTRY_##name,
enum entry { FALLIBLE(NUMBER) ENTRIES };

static struct fault {
	unsigned skip, count;
} faults[ENTRIES];
static bool failed, protection_fails;
static const char *device;
static bool removed;
static unsigned restored;

static bool due(enum entry entry)
{
	struct fault *f = &faults[entry];

	if (!f->count)
		return false;
	if (f->skip) {
		f->skip--;
		return false;
	}
	f->count--;
	errno = ENOMEM;
	return true;
}

/* --- calls that fail -------------------------------------------------------------------------- */

/* -1 and errno; an errno; NULL and errno. */
#define FAILS_RDMA(name, params, args)                                  \
	static int faulty_##name params                                 \
	{                                                               \
		return due(ENTRY_##name) ? -1 : fabric_verbs.name args; \
	}
#define FAILS_IBV(name, params, args)                                      \
	static int faulty_##name params                                    \
	{                                                                  \
		return due(ENTRY_##name) ? errno : fabric_verbs.name args; \
	}
#define FAILS_NULL(type, name, params, args)                              \
	static type *faulty_##name params                                 \
	{                                                                 \
		return due(ENTRY_##name) ? NULL : fabric_verbs.name args; \
	}

FAILS_NULL(struct rdma_event_channel, create_event_channel, (void), ())
FAILS_RDMA(create_id,
	   (struct rdma_event_channel * channel, struct rdma_cm_id **id, void *context,
	    enum rdma_port_space ps),
	   (channel, id, context, ps))
FAILS_RDMA(migrate_id, (struct rdma_cm_id * id, struct rdma_event_channel *channel), (id, channel))
FAILS_RDMA(bind_addr, (struct rdma_cm_id * id, struct sockaddr *addr), (id, addr))
FAILS_RDMA(listen, (struct rdma_cm_id * id, int backlog), (id, backlog))
FAILS_RDMA(resolve_addr,
	   (struct rdma_cm_id * id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms),
	   (id, src, dst, timeout_ms))
FAILS_RDMA(resolve_route, (struct rdma_cm_id * id, int timeout_ms), (id, timeout_ms))
FAILS_RDMA(connect, (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FAILS_RDMA(accept, (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FAILS_RDMA(reject, (struct rdma_cm_id * id, const void *data, uint8_t size), (id, data, size))
FAILS_RDMA(disconnect, (struct rdma_cm_id * id), (id))
FAILS_RDMA(create_qp, (struct rdma_cm_id * id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr),
	   (id, pd, attr))
FAILS_IBV(query_device, (struct ibv_context * ctx, struct ibv_device_attr *attr), (ctx, attr))
FAILS_IBV(query_port, (struct ibv_context * ctx, uint8_t port, struct ibv_port_attr *attr),
	  (ctx, port, attr))
FAILS_IBV(query_gid,
	  (struct ibv_context * ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *entry),
	  (ctx, port, index, entry))
FAILS_NULL(struct ibv_pd, alloc_pd, (struct ibv_context * ctx), (ctx))
FAILS_NULL(struct ibv_mr, reg_mr, (struct ibv_pd * pd, void *addr, size_t size, int access),
	   (pd, addr, size, access))
FAILS_NULL(struct ibv_comp_channel, create_comp_channel, (struct ibv_context * ctx), (ctx))
FAILS_NULL(struct ibv_cq, create_cq,
	   (struct ibv_context * ctx, int cqe, void *context, struct ibv_comp_channel *channel,
	    int vector),
	   (ctx, cqe, context, channel, vector))
FAILS_IBV(req_notify_cq, (struct ibv_cq * cq, int solicited_only), (cq, solicited_only))
FAILS_NULL(struct ibv_srq, create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr *attr),
	   (pd, attr))
FAILS_IBV(query_qp,
	  (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
	  (qp, attr, mask, init))
FAILS_IBV(modify_qp, (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))

/* --- a list that is taken in part ------------------------------------------------------------- */

/* The first work request goes, the one after it is refused. */
static int faulty_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr first = *wr;
	int rc;

	if (!due(ENTRY_post_send))
		return fabric_verbs.post_send(qp, wr, bad);
	*bad = wr;
	if (!wr->next)
		return ENOMEM;
	first.next = NULL;
	rc = fabric_verbs.post_send(qp, &first, bad);
	*bad = rc ? wr : wr->next;
	return rc ? rc : ENOMEM;
}

static int faulty_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return due(ENTRY_post_recv) ? ENOMEM : fabric_verbs.post_recv(qp, wr, bad);
}

static int faulty_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad)
{
	*bad = wr;
	return due(ENTRY_post_srq_recv) ? ENOMEM : fabric_verbs.post_srq_recv(srq, wr, bad);
}

/* --- looking on ------------------------------------------------------------------------------- */

static int watched_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = fabric_verbs.poll_cq(cq, max, wc);

	for (int i = 0; i < n; i++)
		must(wc[i].status != IBV_WC_LOC_PROT_ERR || protection_fails);
	return n;
}

static struct rdma_verbs verbs;

static void set_verbs(void)
{
#define REPLACE(name) verbs.name = faulty_##name;
	verbs = fabric_verbs;
	FALLIBLE(REPLACE)
	verbs.poll_cq = watched_poll_cq;
	rdma_verbs = &verbs;
}

/* --- work ------------------------------------------------------------------------------------- */

static bool step_each(void)
{
	struct ibv_qp *qp;
	bool moved = false;

	for (unsigned i = 0; (qp = fabric_qp(i)); i++) {
		adapter_look(qp);
		moved |= fabric_step(qp);
	}
	return moved;
}

bool adapter_run(void)
{
	unsigned rounds = 0;

	while (step_each())
		must(rounds++ < ROUNDS_MAX);
	return rounds;
}

/* --- the program's ---------------------------------------------------------------------------- */

void adapter_remove(void)
{
	if (!removed)
		fabric_remove(device);
	removed = true;
}

void adapter_restore(void)
{
	if (!removed || restored == RESTORES_MAX)
		return;
	fabric_restore(device);
	removed = false;
	restored++;
}

void adapter_fail(uint8_t entry, unsigned skip, unsigned count)
{
	faults[entry % ENTRIES] = (struct fault){ skip, count };
	failed = true;
}

void adapter_fail_next(struct ibv_qp *qp, bool receive, uint8_t status)
{
	enum ibv_wc_status which = status % IBV_WC_TM_ERR;

	fabric_fail_next(qp, receive, which);
	protection_fails |= which == IBV_WC_LOC_PROT_ERR;
	failed |= which != IBV_WC_SUCCESS;
}

void adapter_lose_keys(void)
{
	failed = protection_fails = true;
}

void adapter_mend(void)
{
	memset(faults, 0, sizeof(faults));
}

bool adapter_has_failed(void)
{
	return failed;
}

/* Adapters that are removed a thousand times a second are too much for a log. */
void __wrap_weft_log(enum weft_log_level level, const char *fmt, ...);

void __wrap_weft_log(enum weft_log_level level, const char *fmt, ...)
{
}

/* --- beginning and end ------------------------------------------------------------------------ */

void adapter_begin(const char *name)
{
	device = name;
	removed = false;
	restored = 0;
	fabric_begin();
	fabric_map("127.0.0.1", device);
	fabric_manual(true);
	adapter_mend();
	failed = protection_fails = false;
	set_verbs();
}

void adapter_end(void)
{
	if (*fabric_left())
		fprintf(stderr, "left on the fabric:%s\n", fabric_left());
	must(!*fabric_left());
	fabric_end();
}
