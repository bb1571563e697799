/* adapter_ops.h - what happens on the adapter, as operations of a program (peer/input.h).
 *
 * It works when the program says so: a request is carried out late, in part, badly or never. */
#ifndef WEFT_FUZZ_ADAPTER_OPS_H
#define WEFT_FUZZ_ADAPTER_OPS_H

#include "fabric/faulty_adapter.h"

void op_step(void);
void op_part(void);
void op_fault(void);
/* Events of one of @n types come late, or those that wait come now. */
void delay_events(const enum rdma_cm_event_type *types, unsigned n);

/* The harness's: the queue pair that the input names; NULL: there is none. */
struct ibv_qp *pick_qp(void);

#endif
