/* fake_ctrl.c - a controller without a connection. */
#include "fake_ctrl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "host/discovery/follower.h"
#include "must.h"
#include "peer/input.h"
#include "transport/tcp/link.h"

void __wrap_host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
void __wrap_host_path_up(struct host_path *path);
void __wrap_host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap_host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int __wrap_weft_admin(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
		      uint64_t *result, struct weft_err *err);
int __wrap_weft_identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *buf,
			 struct weft_err *err);
int __wrap_weft_log_page(struct weft_ctrl *ctrl, uint8_t lid, uint32_t nsid, uint64_t offset,
			 void *buf, uint32_t length, struct weft_err *err);
int __wrap_host_connect_once(const struct host_path_spec *specs, int count, uint32_t lifetime_ms,
			     struct weft_ctrl **ctrl, struct weft_err *err);
void __wrap_weft_disconnect(struct weft_ctrl *ctrl);

struct weft_ctrl *fake_ctrl;
struct host_path *fake_ctrl_path;
bool fake_ctrl_up, fake_ctrl_broken;
unsigned fake_ctrl_connects, fake_ctrl_open;

static struct weft_reactor *reactor;
static uint64_t now_ns = 1000000000;
static struct weft_list wanted; /* host_admin */

/* --- its life --------------------------------------------------------------------------------- */

uint64_t fake_ctrl_clock(void *arg)
{
	return now_ns;
}

void fake_ctrl_create(void)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = fake_ctrl_clock };

	must(!weft_reactor_create(&reactor, &options, NULL));
	fake_ctrl = calloc(1, sizeof(*fake_ctrl));
	fake_ctrl_path = calloc(1, sizeof(*fake_ctrl_path));
	must(fake_ctrl && fake_ctrl_path);
	fake_ctrl_path->setup.page = malloc(HOST_PAGE);
	fake_ctrl_path->aer.page = malloc(HOST_AERS * HOST_PAGE);
	fake_ctrl_path->scan.page = malloc(2 * HOST_PAGE);
	must(fake_ctrl_path->setup.page && fake_ctrl_path->aer.page && fake_ctrl_path->scan.page);
	fake_ctrl->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	must(fake_ctrl->event_fd >= 0);
	weft_mutex_init(&fake_ctrl->lock);
	pthread_cond_init(&fake_ctrl->changed, NULL);
	host_ns_records_init(fake_ctrl);
	fake_ctrl_reset();
}

void fake_ctrl_reset(void)
{
	struct weft_ctrl *c = fake_ctrl;
	struct host_path *p = fake_ctrl_path;
	struct host_path fresh_path = { .config.transport = &weft_tcp_link,
					.ctrl = c,
					.pub.tried = true,
					.reactor = reactor,
					.setup.page = p->setup.page,
					.aer.page = p->aer.page,
					.scan.page = p->scan.page };
	struct weft_ctrl fresh = { .config.transport = &weft_tcp_link,
				   .reactor = reactor,
				   .paths = { p },
				   .event_fd = c->event_fd,
				   .lock = c->lock,
				   .changed = c->changed };

	host_ns_records_free(c);
	if (p->reactor)
		host_scan_stop(p);
	*p = fresh_path;
	*c = fresh;
	c->pub.traits.transfer_max = 1 << 20; /* as the last connection said */
	weft_list_init(&c->queues);
	host_ns_records_init(c);
	weft_options_init(&c->config.options);
	host_followers_init(c);
	weft_list_init(&wanted);
	fake_ctrl_up = fake_ctrl_broken = false;
	fake_ctrl_connects = fake_ctrl_open = 0;
}

void fake_ctrl_turn(uint64_t ms)
{
	now_ns += ms * 1000000;
	weft_reactor_turn(reactor, 0);
}

/* --- asynchronously --------------------------------------------------------------------------- */

void __wrap_host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms)
{
	must(a->name && a->done);
	must(a->iov.iov_len <= 1 << 20);
	a->path = path;
	if (host_path_is_lost(path)) {
		a->done(a, -ECONNRESET);
		return;
	}
	a->inflight = true;
	weft_list_push(&wanted, &a->link);
}

static struct host_admin *next_wanted(void)
{
	struct weft_list *link = weft_list_pop(&wanted);
	struct host_admin *a = link ? container_of(link, struct host_admin, link) : NULL;

	if (a)
		a->inflight = false;
	return a;
}

bool fake_ctrl_answer(void)
{
	struct host_admin *a = next_wanted();
	uint8_t how;

	if (!a)
		return false;
	how = u8();
	a->cqe = (struct nvme_cqe){ 0 };
	if (how & 1)
		a->cqe.status = cpu_to_le16(u16());
	if (how & 2)
		a->cqe.result = cpu_to_le64(u64());
	else if (how & 4)
		a->cqe.result = cpu_to_le64(u8());
	if (nvme_cmd_direction(&a->cmd) == NVME_DIR_TO_HOST && a->iov.iov_len)
		input_bytes(a->iov.iov_base, a->iov.iov_len, how & 8 ? (how >> 4) * 300u : 0);
	a->done(a, 0);
	return true;
}

void fake_ctrl_lose(void)
{
	struct host_admin *a;

	fake_ctrl_path->state = HOST_PATH_RESETTING;
	while ((a = next_wanted()))
		a->done(a, -ECONNRESET);
}

void __wrap_host_path_up(struct host_path *path)
{
	must(!fake_ctrl_up && !fake_ctrl_broken);
	fake_ctrl_up = true;
	path->state = HOST_PATH_LIVE;
	path->assoc.generation++;
	path->pub.state = path->ctrl->pub.state = WEFT_LIVE;
	path->pub.traits = path->ctrl->pub.traits = path->assoc.traits;
	host_keepalive_start(path);
	host_aer_start(path);
}

static void note_cause(struct host_path *path, int rc, const char *fmt, va_list ap)
{
	must(rc < 0);
	if (host_path_is_lost(path))
		return;
	fake_ctrl_broken = true;
	path->state = path->state == HOST_PATH_LIVE ? HOST_PATH_CLOSE_WAIT : HOST_PATH_RESETTING;
	path->assoc.rc = rc;
	must(vsnprintf(path->assoc.why.text, sizeof(path->assoc.why.text), fmt, ap) > 0);
}

void __wrap_host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_cause(path, rc, fmt, ap);
	va_end(ap);
}

/* Nothing is listened for. */
void __wrap_host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_cause(path, rc, fmt, ap);
	va_end(ap);
}

/* --- at once ---------------------------------------------------------------------------------- */

static int refused(struct weft_err *err)
{
	return weft_fail(err, -EIO, "refused");
}

int __wrap_weft_identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *buf,
			 struct weft_err *err)
{
	uint8_t how = u8();

	input_bytes(buf, HOST_PAGE, how & 2 ? HOST_PAGE : how);
	return how & 1 ? refused(err) : 0;
}

int __wrap_weft_admin(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
		      uint64_t *result, struct weft_err *err)
{
	uint8_t how = u8();

	must(!result);
	input_bytes(buf, length, how & 2 ? length : how);
	return how == 0xff ? refused(err) : how & 1 ? u16() & 0x7ff : 0;
}

/* Text with a length before it, not terminated when it fills its field. */
static void put_text(char *to, size_t size)
{
	input_bytes(to, size, u8());
}

static void put_entry(struct nvmf_disc_log_entry *e)
{
	memset(e, 0, sizeof(*e));
	e->trtype = u8();
	e->adrfam = u8();
	e->subtype = u8();
	e->treq = u8();
	put_text(e->traddr, sizeof(e->traddr));
	put_text(e->trsvcid, sizeof(e->trsvcid));
	put_text(e->subnqn, sizeof(e->subnqn));
}

static void put_header(struct nvmf_discovery_log *log)
{
	uint8_t how = u8();

	log->genctr = cpu_to_le64(how >> 2);
	log->numrec = cpu_to_le64(how & 1 ? u64() : u8() % 40);
	log->recfmt = cpu_to_le16(how & 2 ? u8() : 0);
}

int __wrap_weft_log_page(struct weft_ctrl *ctrl, uint8_t lid, uint32_t nsid, uint64_t offset,
			 void *buf, uint32_t length, struct weft_err *err)
{
	struct nvmf_discovery_log log = { 0 };
	char *at = buf;

	must(length && length % 4 == 0);
	memset(buf, 0, length);
	if (!input_left())
		return refused(err);
	if (!offset) {
		put_header(&log);
		memcpy(buf, &log, length < sizeof(log) ? length : sizeof(log));
		return 0;
	}
	must(offset % sizeof(struct nvmf_disc_log_entry) == 0);
	must(length % sizeof(struct nvmf_disc_log_entry) == 0);
	for (; length; length -= (uint32_t)sizeof(struct nvmf_disc_log_entry)) {
		put_entry((struct nvmf_disc_log_entry *)at);
		at += sizeof(struct nvmf_disc_log_entry);
	}
	return 0;
}

int __wrap_host_connect_once(const struct host_path_spec *specs, int count, uint32_t lifetime_ms,
			     struct weft_ctrl **ctrl, struct weft_err *err)
{
	struct sockaddr_storage addr;

	must(count == 1 && lifetime_ms && specs->config.transport);
	must(!weft_addr_parse(specs->parts.host, specs->parts.port, &addr)); /* no resolver */
	must(++fake_ctrl_connects <= 64);
	if (u8() & 1)
		return weft_fail(err, -ECONNREFUSED, "connect: refused");
	fake_ctrl_open++;
	*ctrl = fake_ctrl;
	return 0;
}

void __wrap_weft_disconnect(struct weft_ctrl *ctrl)
{
	must(ctrl == fake_ctrl && fake_ctrl_open);
	fake_ctrl_open--;
}
