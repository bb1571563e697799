/* budget.c - see budget.h. */
#include "host/budget.h"

#define NS_PER_MS UINT64_C(1000000)

uint32_t host_budget_spend(struct host_budget *budget, uint64_t now_ns)
{
	uint64_t past_ms = (now_ns - budget->since_ns) / NS_PER_MS;

	if (past_ms >= HOST_BUDGET_MS)
		*budget = (struct host_budget){ .since_ns = now_ns };
	else if (budget->spent == HOST_BUDGET)
		return HOST_BUDGET_MS - (uint32_t)past_ms;
	budget->spent++;
	return 0;
}
