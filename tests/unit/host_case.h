/* host_case.h - a connected host for each case: a controller, a namespace, a queue. */
#ifndef WEFT_TESTS_HOST_CASE_H
#define WEFT_TESTS_HOST_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/host.h>

#include "world/target_thread.h"

#include "running.h"

/* Namespaces that the target starts with. */
enum { NS_512 = 1, NS_4K, NS_RO, NS_FILE /* a case's own */, NS_BYTES = 16 << 20 };

struct host {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
};

/* A promise that a thread other than the test's may check. */
#define need(what)                                                                         \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                           \
		}                                                                          \
	} while (0)

static inline struct weft_ctrl *connect_at(const char *address, const char *words)
{
	struct weft_err err = { "" };
	struct weft_ctrl *ctrl;
	char uri[512];

	snprintf(uri, sizeof(uri), "%s/%s%s", address, TARGET_NQN, words);
	if (weft_connect(uri, NULL, &ctrl, &err) < 0)
		fail_msg("%s: %s", uri, err.text);
	return ctrl;
}

static inline struct weft_ctrl *connect_with(const char *words)
{
	return connect_at(target_address(), words);
}

/* RDMA has no digests. */
static inline bool on_rdma(void)
{
	return !strncmp(target_address(), "nvme+rdma", 9);
}

static inline struct weft_ns *open_ns(struct weft_ctrl *ctrl, uint32_t nsid)
{
	struct weft_err err = { "" };
	struct weft_ns *ns;

	if (weft_ns_open(ctrl, nsid, &ns, &err) < 0)
		fail_msg("%s", err.text);
	return ns;
}

static inline struct weft_queue *open_queue(struct weft_ctrl *ctrl)
{
	struct weft_err err = { "" };
	struct weft_queue *queue;

	if (weft_queue_open(ctrl, &queue, &err) < 0)
		fail_msg("%s", err.text);
	return queue;
}

static inline struct host host_open(const char *words, uint32_t nsid)
{
	struct host h = { .ctrl = connect_with(words) };

	h.ns = open_ns(h.ctrl, nsid);
	h.queue = open_queue(h.ctrl);
	return h;
}

static inline void host_close(struct host *h)
{
	weft_queue_close(h->queue);
	weft_ns_close(h->ns);
	weft_disconnect(h->ctrl);
}

static inline int start_target(void **state)
{
	alarm(110); /* what never comes is a hang */
	target_start();
	target_ns_add(NS_512, "mem:16M", 512, NULL);
	target_ns_add(NS_4K, "mem:16M", 4096, NULL);
	target_ns_add(NS_RO, "mem:1M,ro", 512, NULL);
	return 0;
}

static inline int end_target(void **state)
{
	target_stop();
	return 0;
}

#endif
