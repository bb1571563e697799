/* foreign_target.c - a stranger's associations: how they begin, what they keep, when they end.
 *
 *   Connect ─▶ traffic? every KATO ─▶ none ─┐
 *                  its connection ends ──────┴▶ it knows ─▶ CQT ─▶ nothing is kept: all is closed
 *
 * Invariant: of an association that knows, nothing is carried out after CQT; and its connections
 * are closed only then, so a host that hears of their end hears the truth. */
#include "foreign_target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "foreign_target_internal.h"
#include "ledger.h"

enum { EVENTS_MAX = 64 };

struct kept {
	struct weft_list link; /* the owner's */
	struct sim_event event;
	struct owner *owner;
	struct talk *talk; /* NULL: nobody waits for the answer */
	uint16_t cid;
	unsigned disk;
	struct weft_io io;
	char data[DISK_BLOCK];
};

static unsigned busy;

unsigned foreign_targets_busy(void)
{
	return busy;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void send_pdu(struct talk *talk, const void *bytes, size_t length)
{
	ssize_t n = send(talk->fd, bytes, length, MSG_NOSIGNAL);

	must(n == (ssize_t)length || (n < 0 && errno != EAGAIN));
}

void foreign_answer(struct talk *talk, uint16_t cid, uint16_t status, uint64_t result)
{
	const struct nvme_tcp_resp resp = {
		.hdr = { NVME_TCP_RESP, 0, sizeof(resp), 0, cpu_to_le32(sizeof(resp)) },
		.cqe = { .result = cpu_to_le64(result),
			 .sqhd = cpu_to_le16(0xffff),
			 .sqid = cpu_to_le16(talk->qid),
			 .cid = cpu_to_le16(cid),
			 .status = cpu_to_le16((uint16_t)(status << 1)) },
	};

	send_pdu(talk, &resp, sizeof(resp));
}

void foreign_answer_data(struct talk *talk, uint16_t cid, const void *data, uint32_t length)
{
	const struct nvme_tcp_data head = {
		.hdr = { NVME_TCP_C2H_DATA, NVME_TCP_F_LAST, sizeof(head), sizeof(head),
			 cpu_to_le32((uint32_t)sizeof(head) + length) },
		.cccid = cpu_to_le16(cid),
		.datal = cpu_to_le32(length),
	};

	send_pdu(talk, &head, sizeof(head));
	send_pdu(talk, data, length);
	foreign_answer(talk, cid, 0, 0);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void drop_command(struct kept *kept)
{
	sim_cancel(&kept->event);
	weft_list_remove(&kept->link);
	free(kept);
	busy--;
}

static void carry_out(struct sim_event *event)
{
	struct kept *kept = container_of(event, struct kept, event);

	disk_carry_out(kept->disk, &kept->io);
	if (kept->io.kind == WEFT_IO_WRITE)
		ledger_carried_out(kept->disk * DISK_BLOCKS +
					   (unsigned)(kept->io.offset / DISK_BLOCK),
				   kept->io.buf);
	if (kept->talk && kept->io.kind == WEFT_IO_READ)
		foreign_answer_data(kept->talk, kept->cid, kept->data, DISK_BLOCK);
	else if (kept->talk)
		foreign_answer(kept->talk, kept->cid, 0, 0);
	drop_command(kept);
}

/* So often longer than anybody's patience that it has something in hand whenever it is lost. */
static uint64_t how_long(void)
{
	if (sim_chance(90))
		return 5 * US + sim_random(200 * US);
	return sim_random(sim_chance(50) ? 300 * MS : 12000 * MS);
}

void foreign_keep(struct talk *talk, uint16_t cid, unsigned disk, const struct weft_io *io)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	must(kept && talk->owner && disk < DISKS && io->offset + io->length <= DISK_BYTES);
	kept->owner = talk->owner;
	kept->talk = talk;
	kept->cid = cid;
	kept->disk = disk;
	kept->io = *io;
	kept->io.buf = kept->data;
	if (io->kind == WEFT_IO_WRITE)
		memcpy(kept->data, io->buf, io->length);
	kept->event.fn = carry_out;
	weft_list_push(&talk->owner->kept, &kept->link);
	busy++;
	sim_at(&kept->event, how_long());
}

/* --- the end of an association ---------------------------------------------------------------- */

static void hang_up(struct talk *talk)
{
	struct kept *kept;

	if (talk->owner) {
		weft_list_for_each(kept, &talk->owner->kept, link)
			if (kept->talk == talk)
				kept->talk = NULL;
		weft_list_remove(&talk->of_owner);
	}
	weft_list_remove(&talk->link);
	close(talk->fd);
	free(talk);
}

static void end(struct sim_event *event)
{
	struct owner *owner = container_of(event, struct owner, end);
	struct weft_list *link;

	while ((link = weft_list_pop(&owner->kept))) {
		struct kept *kept = container_of(link, struct kept, link);

		weft_list_init(&kept->link);
		drop_command(kept);
	}
	while (!weft_list_empty(&owner->talks))
		hang_up(container_of(owner->talks.next, struct talk, of_owner));
	sim_cancel(&owner->look);
	weft_list_remove(&owner->link);
	free(owner);
}

/* What it has in hand now is carried out while there is time, as late as that, or not at all. */
static void on_host_lost(struct owner *owner)
{
	uint64_t cqt_ns = owner->stranger->kind->cqt_ms * MS;
	struct kept *kept, *next;

	if (owner->knows)
		return;
	owner->knows = true;
	sim_cancel(&owner->look);
	weft_list_for_each_safe(kept, next, &owner->kept, link) {
		if (!cqt_ns || sim_chance(30))
			drop_command(kept);
		else
			sim_at(&kept->event, sim_random(cqt_ns));
	}
	owner->end.fn = end;
	sim_at(&owner->end, cqt_ns);
}

static void look_for_traffic(struct sim_event *event)
{
	struct owner *owner = container_of(event, struct owner, look);

	if (!owner->traffic) {
		sim_tell("controller %u misses its host", owner->cntlid);
		on_host_lost(owner);
		return;
	}
	owner->traffic = false;
	sim_at(&owner->look, owner->kato_ns);
}

/* --- its beginning ---------------------------------------------------------------------------- */

struct owner *foreign_own(struct talk *talk, uint32_t kato_ms)
{
	struct foreign_target *s = talk->stranger;
	struct owner *owner = calloc(1, sizeof(*owner));

	must(owner && kato_ms);
	owner->stranger = s;
	owner->cntlid = ++s->last_cntlid;
	owner->kato_ns = kato_ms * MS;
	weft_list_init(&owner->talks);
	weft_list_init(&owner->kept);
	weft_list_push(&s->owners, &owner->link);
	owner->look.fn = look_for_traffic;
	sim_at(&owner->look, owner->kato_ns);
	return owner;
}

struct owner *foreign_find(const struct foreign_target *s, uint16_t cntlid)
{
	struct owner *owner;

	weft_list_for_each(owner, &s->owners, link)
		if (owner->cntlid == cntlid)
			return owner;
	return NULL;
}

void foreign_join(struct talk *talk, struct owner *owner)
{
	talk->owner = owner;
	weft_list_push(&owner->talks, &talk->of_owner);
}

/* --- connections ------------------------------------------------------------------------------ */

static void initialize(struct talk *talk)
{
	const struct nvme_tcp_icresp icresp = {
		.hdr = { NVME_TCP_ICRESP, 0, sizeof(icresp), 0, cpu_to_le32(sizeof(icresp)) },
		.maxh2cdata = cpu_to_le32(NVME_TCP_H2C_DATA_MIN),
	};

	send_pdu(talk, &icresp, sizeof(icresp));
}

/* What the host sends is ours, and right. */
static size_t take_pdu(struct talk *talk)
{
	const struct nvme_tcp_cmd *pdu = (const struct nvme_tcp_cmd *)talk->in;
	size_t length = talk->have < sizeof(pdu->hdr) ? 0 : le32_to_cpu(pdu->hdr.plen);

	must(length <= sizeof(talk->in));
	if (!length || talk->have < length)
		return 0;
	if (pdu->hdr.type == NVME_TCP_ICREQ) {
		initialize(talk);
	} else {
		must(pdu->hdr.type == NVME_TCP_CMD);
		foreign_command(talk, &pdu->sqe, talk->in + sizeof(*pdu),
				(uint32_t)(length - sizeof(*pdu)));
	}
	return length;
}

static void take_in(struct talk *talk)
{
	size_t length;

	while ((length = take_pdu(talk))) {
		talk->have -= length;
		memmove(talk->in, talk->in + length, talk->have);
	}
}

static void epoll_add_fd(struct foreign_target *s, int fd, bool *ready)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = ready };

	must(!epoll_ctl(s->watch, EPOLL_CTL_ADD, fd, &event));
}

/* Sockets that have something; asking each of them would cost most of all time. */
static void look(struct foreign_target *s)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(s->watch, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++)
		*(bool *)events[i].data.ptr = true;
}

/* One whose owner knows is not listened to any more. */
static void listen_to(struct talk *talk)
{
	ssize_t n = 1;

	if (!talk->ready)
		return;
	talk->ready = false;
	while (n > 0 && !(talk->owner && talk->owner->knows)) {
		n = recv(talk->fd, talk->in + talk->have, sizeof(talk->in) - talk->have,
			 MSG_DONTWAIT);
		if (n > 0) {
			talk->have += (size_t)n;
			take_in(talk);
		}
	}
	if (n < 0 && errno == EAGAIN)
		return;
	epoll_ctl(talk->stranger->watch, EPOLL_CTL_DEL, talk->fd, NULL);
	if (n <= 0 && talk->owner)
		on_host_lost(talk->owner);
	else if (n <= 0)
		hang_up(talk);
}

static void accept_from(struct foreign_target *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct talk *talk;

	if (fd < 0)
		return;
	talk = calloc(1, sizeof(*talk));
	must(talk);
	talk->stranger = s;
	talk->fd = fd;
	epoll_add_fd(s, fd, &talk->ready);
	weft_list_push(&s->talks, &talk->link);
}

static void turn_target(void *arg)
{
	struct foreign_target *s = arg;
	struct talk *talk, *next;

	look(s);
	weft_list_for_each_safe(talk, next, &s->talks, link)
		listen_to(talk);
	for (unsigned i = 0; i < s->nlisteners; i++) {
		if (s->called[i])
			accept_from(s, s->listeners[i]);
		s->called[i] = false;
	}
}

static int open_listener(uint16_t *socket_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, 64));
	must(!getsockname(fd, (struct sockaddr *)&addr, &len));
	*socket_port = ntohs(addr.sin_port);
	return fd;
}

struct foreign_target *foreign_open(const struct sim_node *sim, const struct foreign_kind *kind,
				    uint16_t *sockets, unsigned count)
{
	const struct weft_reactor_options options = { .cpu = -1 };
	struct foreign_target *s = calloc(1, sizeof(*s));

	must(s && count <= STRANGER_PORTS);
	s->sim = sim;
	s->kind = kind;
	weft_list_init(&s->owners);
	weft_list_init(&s->talks);
	s->watch = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < count; i++) {
		s->listeners[i] = open_listener(&sockets[i]);
		epoll_add_fd(s, s->listeners[i], &s->called[i]);
	}
	s->nlisteners = count;
	must(!weft_reactor_create(&s->reactor, &options, NULL));
	sim_add_reactor(s->reactor, sim, turn_target, s);
	return s;
}

void foreign_close(struct foreign_target *s)
{
	struct owner *owner, *next;

	weft_list_for_each_safe(owner, next, &s->owners, link) {
		sim_cancel(&owner->end);
		end(&owner->end);
	}
	while (!weft_list_empty(&s->talks))
		hang_up(container_of(s->talks.next, struct talk, link));
	for (unsigned i = 0; i < s->nlisteners; i++)
		close(s->listeners[i]);
	close(s->watch);
	sim_remove_reactor(s->reactor);
	weft_reactor_destroy(s->reactor);
	free(s);
}
