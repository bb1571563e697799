/* uri.c - parses URIs, addresses and NQNs.
 *
 *   nvme+tcp://   [::1]   :4420   /nqn.2026-11.io.weft:default   ?nsid=1&hdgst=1
 *   scheme        host    port    path                           query
 *
 * A target resolves no name but "localhost": where it listens must not depend on DNS. Its query is
 * portid=N. */
#include "proto/uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <nvme/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define SCHEME_TCP  "nvme+tcp://"
#define SCHEME_RDMA "nvme+rdma://"
#define NQN_UUID    "nqn.2014-08.org.nvmexpress:uuid:"

static const struct {
	const char *scheme, *name;
	uint8_t trtype;
} transports[] = {
	{ SCHEME_TCP, "tcp", NVMF_TRTYPE_TCP },
	{ SCHEME_RDMA, "rdma", NVMF_TRTYPE_RDMA },
};

#define NTRANSPORTS (sizeof(transports) / sizeof(transports[0]))

static int skip_scheme(char **at, uint8_t *trtype, struct weft_err *err)
{
	for (size_t i = 0; i < NTRANSPORTS; i++) {
		size_t len = strlen(transports[i].scheme);

		if (strncasecmp(*at, transports[i].scheme, len))
			continue;
		*trtype = transports[i].trtype;
		*at += len;
		return 0;
	}
	return weft_fail(err, -EINVAL,
			 "expected " SCHEME_TCP "ADDRESS:PORT or " SCHEME_RDMA "…, got \"%s\"",
			 *at);
}

/* Ends @text at the first @stop and returns what follows it, or NULL. */
static char *split(char *text, char stop)
{
	char *at = strchr(text, stop);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int parse_port(const char *text, uint16_t *port, struct weft_err *err)
{
	unsigned long value = strtoul(text, NULL, 10);

	if (!*text || strlen(text) > 5 || text[strspn(text, "0123456789")] || value > 65535)
		return weft_fail(err, -EINVAL, "expected a port from 1 to 65535, got \"%s\"", text);
	*port = (uint16_t)value;
	return 0;
}

static int split_ipv6(char *host, struct weft_uri_parts *parts, struct weft_err *err)
{
	char *rest = split(host, ']');
	struct in6_addr addr;

	if (!rest)
		return weft_fail(err, -EINVAL, "no \"]\" after the IPv6 address \"%s\"", host);
	if (inet_pton(AF_INET6, host, &addr) != 1)
		return weft_fail(err, -EINVAL, "\"%s\" is not an IPv6 address", host);
	if (*rest && *rest != ':')
		return weft_fail(err, -EINVAL, "expected \":PORT\" after \"]\", got \"%s\"", rest);
	strcpy(parts->host, host);
	return *rest ? parse_port(rest + 1, &parts->port, err) : 0;
}

static int split_host(char *host, struct weft_uri_parts *parts, struct weft_err *err)
{
	char *port = split(host, ':');

	if (port && strchr(port, ':'))
		return weft_fail(err, -EINVAL,
				 "an IPv6 address goes in brackets: " SCHEME_TCP "[::1]:4420");
	if (!*host)
		return weft_fail(err, -EINVAL, "no address after the \"//\"");
	strcpy(parts->host, strcasecmp(host, "localhost") ? host : "127.0.0.1");
	return port ? parse_port(port, &parts->port, err) : 0;
}

/* @shape: '0' stands for a digit, 'x' for a hexadecimal one, the rest for itself. */
static bool matches_pattern(const char *text, const char *shape)
{
	for (; *shape; text++, shape++) {
		if (*shape == '0' ? !isdigit((unsigned char)*text) :
		    *shape == 'x' ? !isxdigit((unsigned char)*text) :
				    *text != *shape)
			return false;
	}
	return true;
}

/* In place: %XX is a byte. */
static int decode_percent(char *text, struct weft_err *err)
{
	char *to = text;
	unsigned byte;

	for (const char *at = text; *at; at++) {
		if (*at != '%') {
			*to++ = *at;
			continue;
		}
		if (!matches_pattern(at + 1, "xx"))
			return weft_fail(err, -EINVAL,
					 "expected two hexadecimal digits behind \"%%\", got "
					 "\"%.2s\"",
					 at + 1);
		sscanf(at + 1, "%2x", &byte);
		if (!byte) /* it would end the name early, and make another name of it */
			return weft_fail(err, -EINVAL, "\"%%00\" cannot be part of a name");
		*to++ = (char)byte;
		at += 2;
	}
	*to = '\0';
	return 0;
}

static int split_nqn(char *path, struct weft_uri_parts *parts, struct weft_err *err)
{
	int rc;

	if (!path || !*path)
		return 0;
	rc = decode_percent(path, err);
	if (!rc)
		rc = weft_subnqn_check(path, err);
	if (!rc)
		strcpy(parts->nqn, path);
	return rc;
}

int weft_uri_split(const char *text, struct weft_uri_parts *parts, struct weft_err *err)
{
	char copy[WEFT_URI_MAX], *at = copy, *path, *query;
	int rc;

	memset(parts, 0, sizeof(*parts));
	parts->port = WEFT_PORT_DEFAULT;
	if (strlen(text) >= sizeof(copy))
		return weft_fail(err, -EINVAL, "an address has fewer than %d characters",
				 WEFT_URI_MAX);
	strcpy(copy, text);
	rc = skip_scheme(&at, &parts->trtype, err);
	if (rc < 0)
		return rc;
	query = split(at, '?');
	if (query)
		strcpy(parts->query, query);
	path = split(at, '/');
	rc = *at == '[' ? split_ipv6(at + 1, parts, err) : split_host(at, parts, err);
	return rc < 0 ? rc : split_nqn(path, parts, err);
}

int weft_addr_parse(const char *host, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
		return -EINVAL;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	return 0;
}

static int parse_portid(const char *query, uint16_t *portid, struct weft_err *err)
{
	static const char word[] = "portid=";
	const char *number = query + strlen(word);
	unsigned long value;

	if (strncmp(query, word, strlen(word)))
		return weft_fail(err, -EINVAL,
				 "query words other than portid=N are not understood here: \"?%s\"",
				 query);
	value = strtoul(number, NULL, 10);
	if (!*number || strlen(number) > 5 || number[strspn(number, "0123456789")] || !value ||
	    value > 65535)
		return weft_fail(err, -EINVAL, "expected a portid from 1 to 65535, got \"%s\"",
				 number);
	*portid = (uint16_t)value;
	return 0;
}

int weft_uri_parse(const char *text, struct weft_uri *uri, struct weft_err *err)
{
	struct weft_uri_parts parts;
	int rc = weft_uri_split(text, &parts, err);

	memset(uri, 0, sizeof(*uri));
	if (rc < 0)
		return rc;
	if (strchr(text, '?'))
		rc = parse_portid(parts.query, &uri->portid, err);
	if (rc < 0)
		return rc;
	if (weft_addr_parse(parts.host, parts.port, &uri->addr) < 0)
		return weft_fail(err, -EINVAL,
				 "\"%s\" is not a numeric address, and names other than localhost "
				 "are not looked up",
				 parts.host);
	uri->trtype = parts.trtype;
	strcpy(uri->nqn, parts.nqn);
	return 0;
}

static size_t transport_index(uint8_t trtype)
{
	size_t i = 0;

	while (transports[i].trtype != trtype && i < NTRANSPORTS - 1)
		i++;
	return i;
}

const char *weft_uri_transport(uint8_t trtype)
{
	return transports[transport_index(trtype)].name;
}

void weft_addr_format(const struct sockaddr_storage *addr, char *text, size_t size)
{
	const void *ip = addr->ss_family == AF_INET6 ?
				 (const void *)&((const struct sockaddr_in6 *)addr)->sin6_addr :
				 (const void *)&((const struct sockaddr_in *)addr)->sin_addr;

	inet_ntop(addr->ss_family == AF_INET6 ? AF_INET6 : AF_INET, ip, text, (socklen_t)size);
}

void weft_uri_format(uint8_t trtype, const struct sockaddr_storage *addr, char *text, size_t size)
{
	const char *scheme = transports[transport_index(trtype)].scheme;
	bool six = addr->ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";

	weft_addr_format(addr, host, sizeof(host));
	snprintf(text, size, "%s%s%s%s:%u", scheme, six ? "[" : "", host, six ? "]" : "",
		 weft_addr_port(addr));
}

uint16_t weft_addr_port(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port); /* IPv6 has it there too */
}

socklen_t weft_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

bool weft_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
		       IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool weft_addr_is_loopback(const struct sockaddr_storage *addr)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}

bool weft_addr_is_wildcard(const struct sockaddr_storage *addr)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	static const uint8_t nothing[4];

	if (addr->ss_family != AF_INET6)
		return !((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	return IN6_IS_ADDR_UNSPECIFIED(in6) ||
	       (IN6_IS_ADDR_V4MAPPED(in6) && !memcmp(&in6->s6_addr[12], nothing, sizeof(nothing)));
}

bool weft_addr_is_multicast(const struct sockaddr_storage *addr)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6)
		return ntohl(in->sin_addr.s_addr) >> 28 >= 14; /* 224.0.0.0 and beyond */
	return IN6_IS_ADDR_MULTICAST(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] >= 224);
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_date(const char *text)
{
	int month;

	if (!matches_pattern(text, "0000-00."))
		return false;
	month = (text[5] - '0') * 10 + text[6] - '0';
	return month >= 1 && month <= 12;
}

/* Labels of letters, digits and hyphens, with dots between, up to the end or a colon. */
static const char *skip_domain(const char *text)
{
	const char *at = text;

	while (isalnum((unsigned char)*at) || *at == '-' ||
	       (*at == '.' && at > text && at[-1] != '.'))
		at++;
	return at == text || at[-1] == '.' ? NULL : at;
}

static bool is_uuid(const char *text)
{
	return matches_pattern(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") && strlen(text) == 36;
}

static int fail_nqn_form(const char *nqn, struct weft_err *err)
{
	return weft_fail(err, -EINVAL,
			 "expected an NQN such as nqn.2026-11.com.example:disks, got \"%s\"", nqn);
}

int weft_subnqn_check(const char *nqn, struct weft_err *err)
{
	if (!*nqn)
		return fail_nqn_form(nqn, err);
	if (strlen(nqn) > WEFT_NQN_MAX)
		return weft_fail(err, -EINVAL, "an NQN has at most %d bytes, this one has %zu",
				 WEFT_NQN_MAX, strlen(nqn));
	if (!weft_utf8_printable(nqn))
		return weft_fail(err, -EINVAL, "an NQN is printable UTF-8");
	return 0;
}

int weft_nqn_check(const char *nqn, struct weft_err *err)
{
	const char *domain = nqn + strlen("nqn.0000-00."), *end;
	int rc = weft_subnqn_check(nqn, err);

	if (rc < 0)
		return rc;
	if (!strncmp(nqn, NQN_UUID, strlen(NQN_UUID)) && !is_uuid(nqn + strlen(NQN_UUID)))
		return weft_fail(err, -EINVAL, "expected a UUID after \"" NQN_UUID "\", got \"%s\"",
				 nqn + strlen(NQN_UUID));
	end = strncmp(nqn, "nqn.", 4) || !is_date(nqn + 4) ? NULL : skip_domain(domain);
	if (!end || (*end && (*end != ':' || !end[1])))
		return fail_nqn_form(nqn, err);
	return 0;
}

/* "?" begins the words, ",nvme+" the next address. */
void weft_nqn_text(const char *nqn, char text[WEFT_NQN_TEXT_MAX + 1])
{
	size_t at = 0;

	for (; *nqn && at + 3 <= WEFT_NQN_TEXT_MAX; nqn++) {
		if (strchr("%?,", *nqn))
			at += (size_t)sprintf(text + at, "%%%02X", (unsigned char)*nqn);
		else
			text[at++] = *nqn;
	}
	text[at] = '\0';
}
