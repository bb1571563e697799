/* transfer.h - one send request against its peer's memory. */
#ifndef WEFT_TESTS_FABRIC_TRANSFER_H
#define WEFT_TESTS_FABRIC_TRANSFER_H

#include "fabric/internal.h"

/* The first @len bytes of a READ or a WRITE. */
enum ibv_wc_status fabric_wire_move(struct fabric_qp *qp, struct fabric_send *send, uint32_t len);
/* A SEND; the peer has a receive. */
enum ibv_wc_status fabric_wire_send(struct fabric_qp *qp, struct fabric_send *send);

#endif
