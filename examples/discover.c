/* discover.c - stay connected to a discovery service and follow what it knows.
 *
 *     cc discover.c -o discover $(pkg-config --cflags --libs weft)
 *     ./discover nvme+tcp://127.0.0.1:4420
 *
 * Prints the log, waits for the service to say that it changed, and prints it again; until Ctrl-C,
 * or until the service has been away for as long as loss_timeout allows. For a single look that
 * also follows referrals there is weft_discover(). */
#include <poll.h>
#include <stdio.h>
#include <weft/host.h>

static int print_log(struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct weft_discovery log;
	int rc = weft_discovery_read(ctrl, &log, err);

	if (rc < 0)
		return rc;
	printf("generation %llu, %u entries\n", (unsigned long long)log.generation, log.count);
	for (unsigned i = 0; i < log.count; i++) {
		const struct weft_discovered *d = &log.entries[i];

		printf("  %s %s %s:%s%s\n", d->subnqn, d->transport, d->address, d->service,
		       d->subtype == 1 ? " (referral)" : "");
	}
	fflush(stdout);
	weft_discovery_free(&log);
	return 0;
}

/* Whether an event is a reason to look again: after a loss, much may have happened unseen. */
static int is_news(const struct weft_event *event)
{
	return event->kind == WEFT_EVENT_DISCOVERY || event->kind == WEFT_EVENT_OVERFLOW ||
	       (event->kind == WEFT_EVENT_STATE && event->state == WEFT_LIVE);
}

static void follow(struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct pollfd fd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };
	struct weft_event event;
	int news, rc = print_log(ctrl, err);

	while (rc == 0 && weft_ctrl_state(ctrl, err) != WEFT_DEAD) {
		err->text[0] = '\0'; /* of a loss that is over */
		poll(&fd, 1, -1);
		news = 0;
		while (weft_ctrl_next_event(ctrl, &event))
			news |= is_news(&event);
		if (news)
			rc = print_log(ctrl, err);
	}
}

int main(int argc, char **argv)
{
	struct weft_err err = { "" };
	struct weft_ctrl_info info;
	struct weft_ctrl *ctrl;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: discover URI\n");
		return 2;
	}
	rc = weft_connect(argv[1], NULL, &ctrl, &err);
	if (rc < 0) {
		fprintf(stderr, "discover: %s\n", err.text);
		return 1;
	}
	weft_ctrl_info(ctrl, &info);
	if (info.discovery)
		follow(ctrl, &err);
	else
		snprintf(err.text, sizeof(err.text), "%s is no discovery service", argv[1]);
	fprintf(stderr, "discover: %s\n", err.text);
	weft_disconnect(ctrl);
	return 1;
}
