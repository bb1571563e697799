/* addr.c - which adapter an address is on, and what becomes of those who go there. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "fabric/internal.h"

enum { RULES_MAX = 16 };

struct rule {
	struct sockaddr_storage addr;
	const char *device; /* NULL: nobody's */
	bool mapped;        /* @device counts */
	enum rdma_cm_event_type fate;
	int status;
};

static struct rule rules[RULES_MAX];
static unsigned rules_count;
static const char *loopback_device = "fake0";

void fabric_addrs_begin(void)
{
	rules_count = 0;
}

static const struct sockaddr_in *in4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)addr;
}

bool fabric_addr_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return in4(addr)->sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
}

bool fabric_addr_same(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return in4(a)->sin_addr.s_addr == in4(b)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&in6(a)->sin6_addr, &in6(b)->sin6_addr);
}

uint16_t fabric_addr_port(const struct sockaddr *addr)
{
	return ntohs(addr->sa_family == AF_INET ? in4(addr)->sin_port : in6(addr)->sin6_port);
}

void fabric_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

size_t fabric_addr_size(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6);
}

void fabric_addr_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (addr->sa_family == AF_INET6) {
		memcpy(gid->raw, &in6(addr)->sin6_addr, 16);
		return;
	}
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &in4(addr)->sin_addr, 4);
}

static bool loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(in4(addr)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6(addr)->sin6_addr);
}

static struct rule *find_rule(const struct sockaddr *addr)
{
	for (unsigned i = 0; i < rules_count; i++)
		if (fabric_addr_same((struct sockaddr *)&rules[i].addr, addr))
			return &rules[i];
	return NULL;
}

struct fabric_dev *fabric_addr_dev(const struct sockaddr *addr)
{
	const struct rule *rule = find_rule(addr);

	const char *device = loopback(addr) ? loopback_device : NULL;

	if (rule && rule->mapped)
		device = rule->device;
	return device ? fabric_dev_of(fabric_context(device)) : NULL;
}

enum rdma_cm_event_type fabric_addr_fate(const struct sockaddr *addr, int *status)
{
	const struct rule *rule = find_rule(addr);

	*status = rule ? rule->status : 0;
	return rule ? rule->fate : RDMA_CM_EVENT_ADDR_RESOLVED;
}

/* --- the test's word on it -------------------------------------------------------------------- */

static void parse(const char *ip, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(addr->ss_family, ip,
		      addr->ss_family == AF_INET ?
			      (void *)&((struct sockaddr_in *)addr)->sin_addr :
			      (void *)&((struct sockaddr_in6 *)addr)->sin6_addr) != 1)
		abort();
}

static struct rule *rule_for(const char *ip)
{
	struct sockaddr_storage addr;
	struct rule *rule;

	parse(ip, &addr);
	rule = find_rule((struct sockaddr *)&addr);
	if (rule)
		return rule;
	if (rules_count == RULES_MAX)
		abort();
	rule = &rules[rules_count++];
	*rule = (struct rule){ .addr = addr };
	return rule;
}

void fabric_map(const char *ip, const char *device)
{
	struct rule *rule;
	FABRIC_LOCKED;

	rule = rule_for(ip);
	rule->mapped = true;
	rule->device = device;
}

void fabric_loopback(const char *device)
{
	loopback_device = device;
}

void fabric_path(const char *ip, enum rdma_cm_event_type event, int status)
{
	struct rule *rule;
	FABRIC_LOCKED;

	rule = rule_for(ip);
	rule->fate = event;
	rule->status = status;
}
