/* client.c - a client of the control socket: one JSON-RPC call, a line there, a line back.
 *
 * The process that answers belongs to root, to this user, or to the owner of the socket; and the
 * socket is where no other user could have put it (base/chase.h). So root can call a service that
 * runs as another user, at /run/weft, but not a stranger's socket in /tmp. */
#include "daemon/control/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/chase.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "daemon/control/methods.h"

#define ROOTS_SOCKET "/run/weft/control.sock"

#define OTHER_SOCKETS                                                         \
	"A target of root is at /run/weft/control.sock, one of another user " \
	"at $XDG_RUNTIME_DIR/weft/control.sock or "                           \
	"/tmp/weft-UID/control.sock: choose it with --control PATH"

/* Who keeps us from @path: the owner of what is there, or of the first folder that we may not look
 * into. */
static uid_t owner_of(const char *path)
{
	char at[PATH_MAX];
	struct stat st;
	char *slash;

	snprintf(at, sizeof(at), "%s", path);
	while (stat(at, &st) < 0) {
		slash = strrchr(at, '/');
		if (!slash || slash == at)
			return geteuid();
		*slash = '\0';
	}
	return st.st_uid;
}

static int fail_foreign(const char *path, uid_t owner, struct weft_err *err)
{
	const struct passwd *user = getpwuid(owner);
	char name[64];

	snprintf(name, sizeof(name), "#%u", owner); /* as sudo takes it */
	if (user)
		snprintf(name, sizeof(name), "%.63s", user->pw_name);
	if (!owner)
		return weft_fail(
			err, -EACCES,
			"%s belongs to root, who alone may call its target: try \"sudo weft ctl "
			"--control %s\"",
			path, path);
	return weft_fail(err, -EACCES,
			 "%s belongs to user %s, who alone, with root, may call its target: try "
			 "\"sudo -u '%s' weft ctl --control %s\"",
			 path, name, name, path);
}

static int fail_connect(const char *path, struct weft_err *err)
{
	struct stat st;
	int rc = -errno;

	if (rc == -EACCES && owner_of(path) != geteuid())
		return fail_foreign(path, owner_of(path), err);
	if (rc == -ENOENT && geteuid() && strcmp(path, ROOTS_SOCKET) && !stat(ROOTS_SOCKET, &st))
		return weft_fail(err, rc,
				 "no target answers at %s, but one of root is at " ROOTS_SOCKET
				 ": try \"sudo weft ctl\"",
				 path);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return weft_fail(
			err, rc,
			"no target answers at %s (%s); is \"weft serve\" running? " OTHER_SOCKETS,
			path, strerror(-rc));
	return weft_fail(err, rc, "cannot connect to %s: %s. " OTHER_SOCKETS, path, strerror(-rc));
}

static int check_socket_path(struct weft_chased *at, const char *path, struct weft_err *err)
{
	int rc = weft_chase(at, path, NULL);

	if (rc == -EPERM)
		return weft_fail(
			err, rc,
			"%s: another user could have put it there: everybody can write to a "
			"folder on the way. A target of another user is called as that user",
			path);
	errno = -rc;
	return rc < 0 ? fail_connect(path, err) : 0;
}

static int ctl_check_peer(int fd, const struct weft_chased *at, const char *path,
			  struct weft_err *err)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return fail_connect(path, err);
	if (!peer.uid || peer.uid == geteuid() || (at->exists && peer.uid == at->st.st_uid))
		return 0;
	return weft_fail(err, -EPERM, "%s: user %u answers there, to whom it does not belong", path,
			 peer.uid);
}

/* After the limit, connecting and sending fail with EAGAIN. */
static void set_limit(int fd, uint32_t limit_ms)
{
	struct timeval limit = { .tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int connect_to(const char *path, uint32_t limit_ms, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	_cleanup_(weft_closep) int fd = -1;
	struct sockaddr_un addr;
	int rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return weft_fail(err, -ENAMETOOLONG, "%s: longer than a socket's path can be",
				 path);
	rc = check_socket_path(&at, path, err);
	if (rc < 0)
		return rc;
	rc = weft_chased_addr(&at, &addr);
	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", path, strerror(-rc));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_connect(path, err);
	set_limit(fd, limit_ms);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? -EAGAIN : fail_connect(path, err);
	rc = ctl_check_peer(fd, &at, path, err);
	return rc < 0 ? rc : take_fd(&fd);
}

static int send_line(int fd, json_t *request)
{
	_cleanup_(weft_freep) char *text = json_dumps(request, JSON_COMPACT);
	size_t len, sent = 0;
	ssize_t n;

	if (!text)
		return -EINVAL;
	len = strlen(text) + 1;
	text[len - 1] = '\n';
	for (; sent < len; sent += (size_t)n) {
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		n = n < 0 ? 0 : n;
	}
	return 0;
}

/* Nothing follows the line. 1: it has ended; 0: the target closed the connection; -errno. */
static int receive_part(int fd, FILE *line, uint64_t deadline_ns)
{
	int rc = weft_poll_until(fd, POLLIN, deadline_ns);
	char part[4096];
	ssize_t n;

	if (rc < 0)
		return rc;
	n = recv(fd, part, sizeof(part), 0);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (fwrite(part, 1, (size_t)n, line) != (size_t)n)
		return -ENOMEM;
	return part[n - 1] == '\n' ? 1 : -EAGAIN;
}

/* NULL, and -ETIMEDOUT in @rc: the line did not come in time; 0: the target closed the
 * connection. */
static json_t *receive_line(int fd, uint64_t deadline_ns, int *rc)
{
	_cleanup_(weft_freep) char *text = NULL;
	size_t size = 0;
	FILE *line = open_memstream(&text, &size);

	*rc = line ? -EAGAIN : -ENOMEM;
	while (*rc == -EAGAIN || *rc == -EINTR)
		*rc = receive_part(fd, line, deadline_ns);
	if (line && fclose(line) == EOF)
		*rc = -ENOMEM;
	return *rc > 0 ? json_loads(text, 0, NULL) : NULL;
}

/* A takeover whose caller has gone is given up. */
bool weft_ctl_needs_its_answer(const char *method)
{
	return !strcmp(method, "status") || !strcmp(method, "methods") ||
	       !strcmp(method, "takeover");
}

/* The target may still carry out what was sent. */
static void fail_timeout(const char *path, const char *method, struct weft_ctl_limit limit,
			 bool sent, struct weft_err *err)
{
	bool may_come = sent && !weft_ctl_needs_its_answer(method);
	char time[32], option[32] = "";

	snprintf(time, sizeof(time), limit.ms % 1000 ? "%u ms" : "%u s",
		 limit.ms % 1000 ? limit.ms : limit.ms / 1000);
	if (limit.name)
		snprintf(option, sizeof(option), " (%s)", limit.name);
	weft_fail(err, -ETIMEDOUT, "%s: the target has not answered for %s%s; %s%s%s", path, time,
		  option,
		  may_come ? "it may still carry " : "is its process stopped, or does it hang?",
		  may_come ? method : "", may_come ? " out" : "");
}

void weft_ctl_methods(const char *names[WEFT_CTL_METHODS_MAX + 1])
{
	size_t n = 0;

	for (; weft_rpc_methods[n].name && n < WEFT_CTL_METHODS_MAX; n++)
		names[n] = weft_rpc_methods[n].name;
	names[n] = NULL;
}

/* The target's list of methods is most likely the same as ours. */
static int fail_method(const char *method, struct weft_err *err)
{
	const char *names[WEFT_CTL_METHODS_MAX + 1], *meant;

	weft_ctl_methods(names);
	meant = weft_suggest_word(method, names);
	return weft_fail(err, -ENOENT, "no method \"%s\"; %s%s%s\"weft ctl methods\" lists them",
			 method, meant ? "did you mean " : "", meant ? meant : "",
			 meant ? "? " : "");
}

static json_t *reply_result(json_t *reply, const char *path, const char *method,
			    struct weft_err *err)
{
	json_t *error = json_object_get(reply, "error"), *result = json_object_get(reply, "result");
	const char *message = json_string_value(json_object_get(error, "message"));

	if (result)
		return json_incref(result);
	if (json_integer_value(json_object_get(error, "code")) == WEFT_RPC_NO_METHOD)
		fail_method(method, err);
	weft_fail(err, -EIO, "%s", message ? message : "");
	weft_fail(err, -EIO, "%s: the target went away before it answered", path);
	return NULL;
}

json_t *weft_ctl_call(const char *path, const char *method, json_t *params,
		      struct weft_ctl_limit limit, struct weft_err *err)
{
	json_auto_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1,
					 "method", method, "params", params);
	uint64_t deadline_ns = limit.ms ? weft_monotonic_ns() + limit.ms * UINT64_C(1000000) :
					  WEFT_NO_DEADLINE;
	_cleanup_(weft_closep) int fd = connect_to(path, limit.ms, err);
	json_auto_t *reply = NULL;
	int rc;

	if (fd == -EAGAIN)
		fail_timeout(path, method, limit, false, err);
	if (fd < 0)
		return NULL;
	rc = send_line(fd, request);
	if (rc == -EAGAIN)
		fail_timeout(path, method, limit, false, err);
	else if (rc < 0)
		weft_fail(err, rc, "%s: %s", path, strerror(-rc));
	reply = receive_line(fd, deadline_ns, &rc);
	if (rc == -ETIMEDOUT)
		fail_timeout(path, method, limit, true, err);
	return reply_result(reply, path, method, err);
}
