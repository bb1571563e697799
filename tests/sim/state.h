/* state.h - the file of state that members of a cluster share: the product's own, on a real
 * file. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <stdbool.h>

struct sim_node;

void state_begin(void); /* an empty one */
void state_end(void);
const char *state_spec(void);

/* @node is dead: what it was about to do with the file was done or not, its locks stay for a while. */
void state_killed(const struct sim_node *node);
bool state_is_held(void); /* by one that is dead */
void state_closed(const struct sim_node *node);

#endif
