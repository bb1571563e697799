/* fabric.c - the fabric's own life: its lock, its counters, the faults that were asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fabric/internal.h"

enum { FAULTS_MAX = 16 };

struct fault {
	const char *entry;
	unsigned skip, count;
	int error;
};

pthread_mutex_t fabric_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct fabric_counts fabric_count;
struct weft_list fabric_qps, fabric_ids, fabric_mrs;
bool fabric_is_manual;
unsigned fabric_hold_all;

static struct fault faults[FAULTS_MAX];
static void (*misuse_hook)(const char *what);
static uint32_t number;

int fabric_lock(void)
{
	pthread_mutex_lock(&fabric_mutex);
	return 1;
}

void fabric_unlock(int *locked)
{
	pthread_mutex_unlock(&fabric_mutex);
}

void fabric_freeze(void)
{
	fabric_lock();
}

void fabric_thaw(void)
{
	fabric_unlock(NULL);
}

void *fabric_new(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* Far from small integers, so that an index is never taken for a key. */
uint32_t fabric_number(void)
{
	number += 0x101;
	return 0x10000 + number;
}

void fabric_on_misuse(void (*hook)(const char *what))
{
	misuse_hook = hook;
}

void fabric_misuse(const char *what, ...)
{
	char text[200];
	va_list args;

	va_start(args, what);
	vsnprintf(text, sizeof(text), what, args);
	va_end(args);
	fabric_count.misuses++;
	if (misuse_hook) {
		misuse_hook(text);
		return;
	}
	fprintf(stderr, "fabric: %s\n", text);
	abort();
}

/* --- faults ----------------------------------------------------------------------------------- */

void fabric_fail(const char *entry, unsigned skip, unsigned count, int error)
{
	FABRIC_LOCKED;

	for (struct fault *f = faults; f < faults + FAULTS_MAX; f++)
		if (!f->count) {
			*f = (struct fault){ entry, skip, count, error };
			return;
		}
	abort();
}

void fabric_fail_no_more(void)
{
	FABRIC_LOCKED;

	memset(faults, 0, sizeof(faults));
}

int fabric_fault(const char *entry)
{
	for (struct fault *f = faults; f < faults + FAULTS_MAX; f++) {
		if (!f->count || strcmp(f->entry, entry) != 0)
			continue;
		if (f->skip) {
			f->skip--;
			continue;
		}
		f->count--;
		return f->error;
	}
	return 0;
}

/* --- what is there ---------------------------------------------------------------------------- */

struct fabric_counts fabric_counts(void)
{
	FABRIC_LOCKED;

	return fabric_count;
}

static void say(char **at, const char *end, unsigned count, const char *what)
{
	if (count)
		*at += snprintf(*at, (size_t)(end - *at), " %u %s", count, what);
}

const char *fabric_left(void)
{
	static _Thread_local char text[160];
	struct fabric_counts c = fabric_counts();
	char *at = text, *end = text + sizeof(text);

	*at = '\0';
	say(&at, end, c.ids, "id(s)");
	say(&at, end, c.channels, "event channel(s)");
	say(&at, end, c.pds, "PD(s)");
	say(&at, end, c.mrs, "MR(s)");
	say(&at, end, c.cqs, "CQ(s)");
	say(&at, end, c.comp_channels, "completion channel(s)");
	say(&at, end, c.srqs, "SRQ(s)");
	say(&at, end, c.qps, "QP(s)");
	return text;
}

struct ibv_qp *fabric_qp(unsigned index)
{
	struct fabric_qp *qp;
	FABRIC_LOCKED;

	weft_list_for_each(qp, &fabric_qps, link)
		if (!index--)
			return &qp->pub;
	return NULL;
}

struct rdma_cm_id *fabric_id(unsigned index)
{
	struct fabric_id *id;
	FABRIC_LOCKED;

	weft_list_for_each(id, &fabric_ids, link)
		if (!index--)
			return &id->pub;
	return NULL;
}

/* --- begin and end ---------------------------------------------------------------------------- */

void fabric_begin(void)
{
	fabric_count = (struct fabric_counts){ 0 };
	memset(faults, 0, sizeof(faults));
	weft_list_init(&fabric_qps);
	weft_list_init(&fabric_ids);
	weft_list_init(&fabric_mrs);
	fabric_is_manual = false;
	fabric_hold_all = 0;
	misuse_hook = NULL;
	fabric_events_begin();
	fabric_addrs_begin();
	fabric_devices_begin();
}

void fabric_end(void)
{
	const char *left = fabric_left();

	fabric_devices_end();
	if (*left)
		fail_msg("left on the fabric:%s", left);
}
