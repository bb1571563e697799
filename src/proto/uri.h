/* uri.h - addresses as users write them: nvme+tcp://HOST:PORT/SUBNQN, IPv6 in brackets; the same
 * with nvme+rdma://. */
#ifndef WEFT_PROTO_URI_H
#define WEFT_PROTO_URI_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define WEFT_NQN_MAX      223 /* NVMe base 2.0, 4.5: NQN of at most 223 bytes */
#define WEFT_URI_MAX      512
#define WEFT_PORT_DEFAULT 4420

/* The parts as text, checked for their form. */
struct weft_uri_parts {
	uint8_t trtype;          /* NVMF_TRTYPE_TCP or NVMF_TRTYPE_RDMA */
	char host[WEFT_URI_MAX]; /* name or address, without brackets; "localhost" is 127.0.0.1 */
	uint16_t port;
	char nqn[WEFT_NQN_MAX + 1]; /* "": the discovery service */
	char query[WEFT_URI_MAX];   /* behind the "?" */
};

int weft_uri_split(const char *text, struct weft_uri_parts *parts, struct weft_err *err);

/* Where a target listens. */
struct weft_uri {
	uint8_t trtype;
	struct sockaddr_storage addr; /* IPv4 or IPv6, with the port */
	char nqn[WEFT_NQN_MAX + 1];   /* "": the discovery service */
	uint16_t portid;              /* ?portid=N, the discovery log's PORTID; 0: none given */
	bool portid_chosen;           /* it was not given, and the target has chosen one */
};

/* Addresses are numeric, or "localhost": where a target listens must not depend on DNS. */
int weft_uri_parse(const char *text, struct weft_uri *uri, struct weft_err *err);
/* nvme+tcp://HOST:PORT of an address. */
void weft_uri_format(uint8_t trtype, const struct sockaddr_storage *addr, char *text, size_t size);
/* "tcp", "rdma" */
const char *weft_uri_transport(uint8_t trtype);

/* Parses a numeric address; -EINVAL: it is none. */
int weft_addr_parse(const char *host, uint16_t port, struct sockaddr_storage *addr);
/* The address alone, without its port. */
void weft_addr_format(const struct sockaddr_storage *addr, char *text, size_t size);
socklen_t weft_addr_len(const struct sockaddr_storage *addr);
uint16_t weft_addr_port(const struct sockaddr_storage *addr);
bool weft_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
bool weft_addr_is_loopback(const struct sockaddr_storage *addr);
bool weft_addr_is_wildcard(const struct sockaddr_storage *addr);
bool weft_addr_is_multicast(const struct sockaddr_storage *addr); /* or broadcast */

/* nqn.YYYY-MM.reversed.domain[:text], or the well-known and UUID forms; printable UTF-8, length. */
int weft_nqn_check(const char *nqn, struct weft_err *err);
/* For a subsystem: checks only UTF-8 and length. Its form is up to the user, as in Linux'
 * target. */
int weft_subnqn_check(const char *nqn, struct weft_err *err);

#define WEFT_NQN_TEXT_MAX (3 * 256)
/* The NQN as part of a URI: characters that would end it become %XX. @nqn has 256 bytes at most. */
void weft_nqn_text(const char *nqn, char text[WEFT_NQN_TEXT_MAX + 1]);

#endif
