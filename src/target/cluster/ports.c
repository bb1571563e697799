/* ports.c - the record of a member's listeners in the store: lines of text.
 *
 *   session 7
 *   nvme+tcp://192.0.2.1:4420?portid=1
 *   nvme+rdma://192.0.2.1:4420?portid=2
 *
 * The record stays when the member is gone, so that hosts learn where to come back to. It is valid
 * for one session: when all members are gone nobody knows which ones will be back. */
#include "target/cluster/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char head[] = "session %llu\n";

size_t ports_encode(const struct ports *ports, uint64_t session, char bytes[PORTS_RECORD_MAX])
{
	size_t len = (size_t)snprintf(bytes, PORTS_RECORD_MAX, head, (unsigned long long)session);

	for (unsigned i = 0; i < ports->count; i++) {
		const struct tgt_port *port = &ports->at[i];
		char uri[80];

		weft_uri_format(port->trtype, &port->addr, uri, sizeof(uri));
		len += (size_t)snprintf(bytes + len, PORTS_RECORD_MAX - len, "%s?portid=%u\n", uri,
					port->portid);
	}
	assert(len < PORTS_RECORD_MAX);
	return len;
}

static int parse_port_line(struct ports *ports, const char *line)
{
	struct tgt_port *port = &ports->at[ports->count];
	struct weft_uri uri;

	if (ports->count == PORTS_MAX || weft_uri_parse(line, &uri, NULL) < 0 || !uri.portid)
		return -EINVAL;
	*port = (struct tgt_port){ uri.trtype, uri.portid, uri.addr };
	ports->count++;
	return 0;
}

static int parse_port_lines(struct ports *ports, char *text)
{
	char *line, *rest;
	int rc = 0;

	for (line = strtok_r(text, "\n", &rest); line && !rc; line = strtok_r(NULL, "\n", &rest))
		rc = parse_port_line(ports, line);
	return rc;
}

int ports_decode(struct ports *ports, uint64_t session, const void *bytes, size_t len)
{
	char text[PORTS_RECORD_MAX + 1], mine[32];
	size_t mine_len;
	int rc = 0;

	ports->count = 0;
	if (!len)
		return 0;
	if (len > PORTS_RECORD_MAX || memchr(bytes, '\0', len))
		return -EINVAL;
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (strncmp(text, head, strcspn(head, "%")) || text[len - 1] != '\n')
		return -EINVAL;
	mine_len = (size_t)snprintf(mine, sizeof(mine), head, (unsigned long long)session);
	if (!strncmp(text, mine, mine_len))
		rc = parse_port_lines(ports, text + mine_len);
	if (rc < 0)
		ports->count = 0;
	return rc;
}
