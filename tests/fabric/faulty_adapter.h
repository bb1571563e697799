/* faulty_adapter.h - the fabric (tests/fabric/fabric.h) as the code under test sees it: calls that
 * fail.
 *
 *   code under test ─▶ rdma_verbs ─▶ fabric_verbs ◀─ the harness's own end, which never fails
 *
 * It also looks on: code that hands the adapter memory without a key of its own is wrong. */
#ifndef WEFT_TESTS_FABRIC_FAULTY_ADAPTER_H
#define WEFT_TESTS_FABRIC_FAULTY_ADAPTER_H

#include "fabric/fabric.h"

/* A fresh fabric, stepped by hand, behind rdma_verbs; the adapter @name answers at 127.0.0.1. */
void adapter_begin(const char *name);
/* Nothing may be left. */
void adapter_end(void);

/* Carries out what can be, until nothing moves. True: something moved. */
bool adapter_run(void);
/* The harness's: sees every queue pair before its turn. */
void adapter_look(struct ibv_qp *qp);

void adapter_remove(void);
void adapter_restore(void); /* a few times in a run */

/* Of the calls of an entry (any number names one), after @skip more, @count fail. */
void adapter_fail(uint8_t entry, unsigned skip, unsigned count);
/* The next completion of @qp has a status of the program's. */
void adapter_fail_next(struct ibv_qp *qp, bool receive, uint8_t status);
/* Keys of the code under test may be gone: the other end has invalidated one. */
void adapter_lose_keys(void);
/* Calls succeed again. */
void adapter_mend(void);
/* There was one of those in this run. */
bool adapter_has_failed(void);

#endif
