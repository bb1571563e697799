/* setup.c - sets a controller up: from a connection to live, one step after the other (NVMe base
 * 2.0, 3.5.2).
 *
 *   connected ─▶ fill ─▶ answer ─▶ the next step … ─▶ ana.c, scan.c ─▶ live
 *                 ▲        ├ refused, or not acceptable ─▶ broken
 *                 └────────┘ not ready yet: the same step again, after a moment
 *
 * The steps are in setup_steps.c. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"
#include "host/path/setup_steps.h"

enum { POLL_MS = 20 }; /* before a step is repeated */

static void setup_send_step(struct host_path *path);

static void setup_next_step(struct host_path *path)
{
	assert(path->setup.step < host_setup_nsteps);
	do {
		path->setup.step++;
	} while (path->setup.step < host_setup_nsteps &&
		 host_setup_steps[path->setup.step].io_only && path->assoc.traits.discovery);
	if (path->setup.step < host_setup_nsteps)
		setup_send_step(path);
	else
		host_ana_setup(path); /* ends with host_path_up() */
}

static void setup_refused(struct host_path *path, const struct host_setup_step *step,
			  uint16_t status)
{
	struct weft_err why = { "" };
	int rc;

	if (!path->setup.step)
		host_explain_connect(&path->config, &path->setup.cmd.cqe, &why);
	rc = host_fail_status(&why, step->name, status);
	path->assoc.refused = !path->setup.step && status & SC_DNR;
	host_path_broken(path, rc, "%s", why.text);
}

static void setup_on_answer(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	const struct host_setup_step *step = &host_setup_steps[path->setup.step];
	uint16_t status = host_status(&a->cqe);

	if (rc < 0 || host_path_is_lost(path))
		return;
	if (status && !step->tolerant) {
		setup_refused(path, step, status);
		return;
	}
	rc = step->answer(path, &a->cqe);
	if (rc == -EAGAIN)
		weft_timer_set(path->reactor, &path->setup.timer, POLL_MS);
	else if (rc == 0)
		setup_next_step(path);
}

static void setup_send_step(struct host_path *path)
{
	const struct host_setup_step *step = &host_setup_steps[path->setup.step];
	struct host_admin *a = &path->setup.cmd;

	assert(host_path_is_setting_up(path));
	assert(path->setup.step < host_setup_nsteps && step->length <= HOST_PAGE);
	host_admin_prepare(a, step->name, setup_on_answer);
	memset(path->setup.page, 0, HOST_PAGE);
	a->iov = (struct iovec){ path->setup.page, step->length };
	step->fill(path, &a->cmd);
	host_admin_start(path, a, path->config.options.connect_ms);
}

static void setup_on_poll_timer(struct weft_timer *timer)
{
	setup_send_step(container_of(timer, struct host_path, setup.timer));
}

void host_setup_start(struct host_path *path)
{
	assert_on(path->reactor);
	assert(host_path_is_setting_up(path));
	memset(&path->assoc.traits, 0, sizeof(path->assoc.traits));
	path->setup.timer.fn = setup_on_poll_timer;
	path->assoc.refused = false;
	path->setup.step = 0;
	setup_send_step(path);
}

void host_setup_shutdown(struct host_path *path, void (*done)(struct host_admin *a, int rc))
{
	struct host_admin *a = &path->setup.cmd;

	assert(path->state == HOST_PATH_SHUTDOWN);
	host_admin_prepare(a, "Property Set CC", done);
	host_fill_shutdown(path, &a->cmd);
	host_admin_start(path, a, path->config.options.connect_ms);
}
