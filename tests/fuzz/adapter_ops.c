/* adapter_ops.c - what happens on the adapter, as operations. */
#include "adapter_ops.h"

#include "peer/input.h"

static bool step(struct ibv_qp *qp)
{
	adapter_look(qp);
	return fabric_step(qp);
}

void op_step(void)
{
	struct ibv_qp *qp = pick_qp();

	for (unsigned n = u8() % 8 + 1u; qp && n && step(qp); n--)
		;
}

/* The beginning of a READ or WRITE. */
void op_part(void)
{
	struct ibv_qp *qp = pick_qp();
	uint32_t len = u16();

	if (qp)
		fabric_part(qp, len);
}

void op_fault(void)
{
	uint8_t entry = u8(), how = u8();

	adapter_fail(entry, how % 16, how / 16 % 4 + 1u);
}

void delay_events(const enum rdma_cm_event_type *types, unsigned n)
{
	uint8_t what = u8();

	if (what & 0x80)
		fabric_deliver();
	else
		fabric_delay(types[what % n], what & 0x40);
}
