/* state.c - members visit the file of state as the product does, with its locks and its inotify.
 *
 *   store/file.c ─▶ weft_workers_call() ─▶ here: later, in the world's time ─▶ the visit, in one piece
 *
 * A visit is one moment, so nobody ever meets another at the file; that somebody does is what the
 * product is told now and then. A member that is killed has a descriptor that leads nowhere from
 * then on; the file behind it, with the locks, is closed when the system gets to it. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "reactor/workers.h"
#include "scheduler.h"
#include "store/cycle.h"

enum { MEMBERS_MAX = 32 };

static struct member {
	const struct sim_node *node; /* NULL: unused */
	int fd;
} members[MEMBERS_MAX];

struct visit {
	struct weft_list link;
	struct sim_event event;
	const struct sim_node *node;
	struct weft_op *op;
};

struct late_close {
	struct sim_event event;
	int fd;
};

static struct weft_list visits = { &visits, &visits };
static char path[64], spec[80];
static unsigned held;

static void on_abort(int sig)
{
	unlink(path);
}

/* In memory, if there is a place: every commit is synced. */
void state_begin(void)
{
	const char *dir = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	int fd;

	must(weft_list_empty(&visits) && !held);
	snprintf(path, sizeof(path), "%s/weft-sim-XXXXXX", dir);
	signal(SIGABRT, on_abort);
	fd = mkstemp(path);
	must(fd >= 0);
	close(fd);
	snprintf(spec, sizeof(spec), "file:%s", path);
}

void state_end(void)
{
	must(weft_list_empty(&visits) && !held);
	unlink(path);
}

const char *state_spec(void)
{
	return spec;
}

bool state_is_held(void)
{
	return held;
}

/* --- visits ----------------------------------------------------------------------------------- */

static void visit_done(struct weft_msg *mail)
{
	struct weft_op *op = container_of(mail, struct weft_op, mail);

	op->done(op, op->res);
}

static int run_visit(const struct visit *visit)
{
	return visit->node->dead || sim_chance(3) ? -EAGAIN : visit->op->call(visit->op);
}

static void end_visit(struct visit *visit)
{
	visit->op->res = run_visit(visit);
	visit->op->mail.fn = visit_done;
	weft_reactor_post(visit->op->reactor, &visit->op->mail);
	weft_list_remove(&visit->link);
	free(visit);
}

static void due(struct sim_event *event)
{
	struct visit *visit = container_of(event, struct visit, event);

	if (visit->node->still)
		sim_at(event, MS);
	else
		end_visit(visit);
}

void __wrap_weft_workers_call(struct weft_workers *pool, struct weft_reactor *r, struct weft_op *op,
			      int (*fn)(struct weft_op *op));
void __wrap_weft_workers_call(struct weft_workers *pool, struct weft_reactor *r, struct weft_op *op,
			      int (*fn)(struct weft_op *op))
{
	struct visit *visit = calloc(1, sizeof(*visit));

	must(visit && sim_current_node);
	op->reactor = r;
	op->call = fn;
	visit->op = op;
	visit->node = sim_current_node;
	visit->event.fn = due;
	weft_list_push(&visits, &visit->link);
	sim_at(&visit->event, 20 * US + sim_random(sim_chance(95) ? 500 * US : 50 * MS));
}

/* --- members ---------------------------------------------------------------------------------- */

static struct member *find_member(const struct sim_node *node)
{
	unsigned i = 0;

	while (i < MEMBERS_MAX && members[i].node != node)
		i++;
	must(i < MEMBERS_MAX);
	return &members[i];
}

int __real_store_cycle_join(struct store_cycle *cycle, unsigned *hidden);
int __wrap_store_cycle_join(struct store_cycle *cycle, unsigned *hidden);
int __wrap_store_cycle_join(struct store_cycle *cycle, unsigned *hidden)
{
	*find_member(NULL) = (struct member){ sim_current_node, cycle->fd };
	return __real_store_cycle_join(cycle, hidden);
}

void state_closed(const struct sim_node *node)
{
	find_member(node)->node = NULL;
}

/* --- death ------------------------------------------------------------------------------------ */

static void close_late(struct sim_event *event)
{
	struct late_close *late = container_of(event, struct late_close, event);

	close(late->fd);
	held--;
	free(late);
}

static void take_descriptor(int fd)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct late_close *late = calloc(1, sizeof(*late));

	must(late && nowhere >= 0);
	late->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	must(late->fd >= 0 && dup3(nowhere, fd, O_CLOEXEC) == fd);
	close(nowhere);
	late->event.fn = close_late;
	held++;
	sim_at(&late->event, sim_random(sim_chance(80) ? 5 * MS : 800 * MS));
}

void state_killed(const struct sim_node *node)
{
	struct visit *visit, *tmp;

	weft_list_for_each_safe(visit, tmp, &visits, link) {
		if (visit->node != node || sim_chance(50))
			continue;
		sim_cancel(&visit->event);
		end_visit(visit);
	}
	take_descriptor(find_member(node)->fd);
}
