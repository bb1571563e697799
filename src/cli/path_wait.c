/* path_wait.c - the messages "waiting 3 s for a path" and "waiting 3 s for an answer". */
#include "cli/path_wait.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"

#define FIRST_S  1.0 /* shorter waits are not reported */
#define REPEAT_S 10.0
#define POLL_MS  250

/* --- what there is ---------------------------------------------------------------------------- */

static bool is_open(enum weft_access access)
{
	return access == WEFT_ACCESS_OPTIMIZED || access == WEFT_ACCESS_NON_OPTIMIZED;
}

bool weft_path_wait_usable(const struct weft_path_wait_paths *p)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->through ? is_open(p->through[i].access) : p->paths[i].state == WEFT_LIVE)
			return true;
	return false;
}

bool weft_has_path(struct weft_ns *ns)
{
	struct weft_ns_path through[WEFT_PATHS_MAX];
	unsigned n = weft_ns_paths(ns, through, WEFT_PATHS_MAX);

	for (unsigned i = 0; i < n && i < WEFT_PATHS_MAX; i++)
		if (is_open(through[i].access))
			return true;
	return false;
}

/* Both lists are in the order of the paths' numbers; a path that came in between is only in the
 * second, and is seen by the next poll. */
static void read_paths(const struct weft_path_wait *w, struct weft_path_wait_paths *p,
		       struct weft_ns_path through[WEFT_PATHS_MAX])
{
	unsigned n = WEFT_PATHS_MAX;

	if (w->ns) {
		n = weft_ns_paths(w->ns, through, WEFT_PATHS_MAX);
		p->through = through;
	}
	p->count = weft_ctrl_paths(w->ctrl, p->paths, WEFT_PATHS_MAX);
	p->count = p->count < n ? p->count : n;
}

/* --- when to print ---------------------------------------------------------------------------- */

bool weft_path_wait_due(struct weft_path_wait *w, bool usable, double now_s)
{
	if (usable && !w->told)
		w->since_s = 0;
	if (usable)
		return w->told;
	if (!w->since_s) {
		w->since_s = now_s;
		w->next_s = now_s + FIRST_S;
	}
	if (now_s < w->next_s)
		return false;
	w->next_s = now_s + REPEAT_S;
	w->told = true;
	return true;
}

void weft_path_wait_asked(struct weft_path_wait *w, const char *what)
{
	atomic_store_explicit(&w->asked, what, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->in_flight, 1, memory_order_relaxed);
}

void weft_path_wait_answered(struct weft_path_wait *w)
{
	atomic_fetch_add_explicit(&w->answered, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&w->in_flight, 1, memory_order_relaxed);
}

void weft_path_wait_progress(struct weft_path_wait *w, const char *what, unsigned in_flight,
			     unsigned long long answered)
{
	atomic_store_explicit(&w->asked, what, memory_order_relaxed);
	atomic_store_explicit(&w->in_flight, in_flight, memory_order_relaxed);
	atomic_store_explicit(&w->answered, answered, memory_order_relaxed);
}

/* Storage that is slow all the time is told of every ten seconds, not with every command. */
bool weft_path_wait_silent(struct weft_path_wait *w, double now_s)
{
	unsigned long long answered = atomic_load(&w->answered);

	if (!atomic_load(&w->in_flight) || answered != w->seen)
		w->silent_s = 0;
	w->seen = answered;
	if (!atomic_load(&w->in_flight))
		return false;
	if (!w->silent_s)
		w->silent_s = now_s;
	if (now_s < w->silent_s + FIRST_S || now_s < w->repeat_s)
		return false;
	w->repeat_s = now_s + REPEAT_S;
	return true;
}

/* --- the sentence ----------------------------------------------------------------------------- */

static void append_path_reason(const struct weft_path_info *path,
			       const struct weft_ns_path *through, char *text, size_t size)
{
	const char *scheme = strstr(path->address, "://");
	const char *address = scheme ? scheme + 3 : path->address;
	uint32_t group = through ? through->ana_group : 0;

	if (path->state != WEFT_LIVE || !through)
		snprintf(text, size, "%s %s%s%s", address, weft_state_text(path->state),
			 path->why.text[0] ? ": " : "", path->why.text);
	else if (group)
		snprintf(text, size, "%s %s (ANA group %u)", address,
			 weft_access_text(through->access), group);
	else
		snprintf(text, size, "%s %s", address, weft_access_text(through->access));
}

void weft_path_wait_why(const struct weft_path_wait_paths *p, char *text, size_t size)
{
	size_t at = 0;

	*text = '\0';
	for (unsigned i = 0; i < p->count && at + 2 < size; i++) {
		at += (size_t)snprintf(text + at, size - at, "%s", i ? ", " : "");
		append_path_reason(&p->paths[i], p->through ? &p->through[i] : NULL, text + at,
				   size - at);
		at += strlen(text + at);
	}
}

static void limit_text(const char *what, uint32_t ms, const char *option, char *text, size_t size)
{
	if (!ms)
		*text = '\0';
	else if (ms % 1000)
		snprintf(text, size, "; %s after %u ms (%s)", what, ms, option);
	else
		snprintf(text, size, "; %s after %u s (%s)", what, ms / 1000, option);
}

static bool none_lives(const struct weft_path_wait_paths *p)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->paths[i].state == WEFT_LIVE)
			return false;
	return true;
}

/* No path answers, and what waits is not I/O, or is I/O that waits longer: then loss_timeout ends
 * it. */
static bool ends_by_loss(const struct weft_path_wait *w, const struct weft_path_wait_paths *p)
{
	bool later = !w->fast_io_fail_ms || (w->loss_ms && w->loss_ms < w->fast_io_fail_ms);

	return none_lives(p) && (!w->ns || later);
}

static void compose_message(const struct weft_path_wait *w, const struct weft_path_wait_paths *p,
			    double now_s, char text[WEFT_PATH_WAIT_TEXT])
{
	unsigned seconds = (unsigned)(now_s - w->since_s);
	char why[640], limit[96], whom[64];
	struct weft_ns_info ns;

	if (!w->ctrl) {
		limit_text("it is given up", w->connect_ms, "--timeout", limit, sizeof(limit));
		snprintf(text, WEFT_PATH_WAIT_TEXT, "waiting %u s for %s %.400s%s", seconds,
			 w->awaited ? w->awaited : "a connection to", w->uri, limit);
		return;
	}
	snprintf(whom, sizeof(whom), "the subsystem");
	if (w->ns) {
		weft_ns_info(w->ns, &ns);
		snprintf(whom, sizeof(whom), "namespace %u", ns.nsid);
	}
	if (ends_by_loss(w, p))
		limit_text("it is given up", w->loss_ms, "loss_timeout", limit, sizeof(limit));
	else
		limit_text("I/O fails", w->fast_io_fail_ms, "fast_io_fail", limit, sizeof(limit));
	weft_path_wait_why(p, why, sizeof(why));
	snprintf(text, WEFT_PATH_WAIT_TEXT, "waiting %u s for a path to %s: %s%s", seconds, whom,
		 why, limit);
}

/* "127.0.0.1:4420, 127.0.0.1:4421 connecting" */
static void list_awaited(const struct weft_path_wait_paths *p, char *text, size_t size)
{
	size_t at = 0;

	*text = '\0';
	for (unsigned i = 0; i < p->count && at < size; i++) {
		const char *scheme = strstr(p->paths[i].address, "://");
		bool live = p->paths[i].state == WEFT_LIVE;

		at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", i ? ", " : "",
				       scheme ? scheme + 3 : p->paths[i].address, live ? "" : " ",
				       live ? "" : weft_state_text(p->paths[i].state));
	}
}

static void compose_silence(const struct weft_path_wait *w, const struct weft_path_wait_paths *p,
			    double now_s, char text[WEFT_PATH_WAIT_TEXT])
{
	const char *asked = atomic_load(&w->asked);
	char where[640], limit[96] = "";

	list_awaited(p, where, sizeof(where));
	if (asked)
		limit_text("it is aborted", w->io_ms, "io_timeout", limit, sizeof(limit));
	snprintf(text, WEFT_PATH_WAIT_TEXT, "waiting %u s for an answer%s%s: %s%s",
		 (unsigned)(now_s - w->silent_s), asked ? " to " : "", asked ? asked : "", where,
		 limit);
}

/* --- poll ------------------------------------------------------------------------------------- */

/* A dead controller is not waited for: an error follows. */
bool weft_path_wait_poll(struct weft_path_wait *w, double now_s, char text[WEFT_PATH_WAIT_TEXT])
{
	struct weft_ns_path through[WEFT_PATHS_MAX];
	struct weft_path_wait_paths p = { 0 };
	bool usable = false;

	if (w->ctrl && weft_ctrl_state(w->ctrl, NULL) == WEFT_DEAD)
		return false;
	if (w->ctrl) {
		read_paths(w, &p, through);
		usable = weft_path_wait_usable(&p);
	}
	if (!weft_path_wait_due(w, usable, now_s)) {
		if (!usable || !weft_path_wait_silent(w, now_s))
			return false;
		compose_silence(w, &p, now_s, text);
		return true;
	}
	if (!usable) {
		compose_message(w, &p, now_s, text);
		return true;
	}
	snprintf(text, WEFT_PATH_WAIT_TEXT, "there is a path again, after %.1f s",
		 now_s - w->since_s);
	w->told = false;
	w->since_s = 0;
	return true;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* One for the process, which is one command. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct weft_list list;
	bool started;
} waits = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void print_message(const char *command, const char *text)
{
	/* In one write, over a line that is drawn again. */
	fprintf(stderr, "%s%s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", command, text);
}

static void poll_waits(void)
{
	char text[WEFT_PATH_WAIT_TEXT];
	struct weft_path_wait *w;

	weft_list_for_each(w, &waits.list, link)
		if (weft_path_wait_poll(w, weft_now_s(), text))
			print_message(w->command, text);
}

static void *wait_thread_main(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "weft-waiting");
	pthread_mutex_lock(&waits.lock);
	for (;;) {
		while (weft_list_empty(&waits.list))
			pthread_cond_wait(&waits.more, &waits.lock);
		poll_waits();
		pthread_mutex_unlock(&waits.lock);
		poll(NULL, 0, POLL_MS);
		pthread_mutex_lock(&waits.lock);
	}
	return NULL;
}

/* Signals are left to other threads. Without a thread nothing is printed. */
static void start_wait_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	weft_list_init(&waits.list);
	waits.started = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, wait_thread_main, NULL))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void weft_path_wait_begin(struct weft_path_wait *w)
{
	if (!w->command)
		return;
	pthread_mutex_lock(&waits.lock);
	if (!waits.started)
		start_wait_thread();
	weft_list_push(&waits.list, &w->link);
	pthread_cond_signal(&waits.more);
	pthread_mutex_unlock(&waits.lock);
}

void weft_path_wait_end(struct weft_path_wait *w)
{
	if (!w->link.next)
		return;
	pthread_mutex_lock(&waits.lock);
	weft_list_remove(&w->link);
	pthread_mutex_unlock(&waits.lock);
	*w = (struct weft_path_wait){ NULL };
}
