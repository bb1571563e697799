/* operator.h - what an operator tells a target that runs: weft ctl ana-set, move, drain. */
#ifndef SIM_ORDERS_H
#define SIM_ORDERS_H

#include "node.h"

/* Other than optimized; @for_good: it does not end while a host stays connected. */
unsigned operator_any_state(bool *for_good);
void operator_ana(struct node *node, unsigned group, unsigned portid,
		  unsigned state); /* portid 0: all */
void operator_ana_back(struct node *node, unsigned group, unsigned portid);
void operator_move(struct node *node, unsigned group, unsigned to); /* group 0: all */
void operator_drain(struct node *node, bool on);

#endif
