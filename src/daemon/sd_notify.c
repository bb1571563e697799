/* sd_notify.c - tell the service manager how far we are (sd_notify(3)). */
#include "daemon/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

void weft_sd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	_cleanup_(weft_closep) int fd = -1;

	if (!len || len >= sizeof(addr.sun_path) || !strchr("/@", path[0]))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@') /* an abstract name */
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}
