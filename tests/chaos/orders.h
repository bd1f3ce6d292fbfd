/* The orders in requests to workers: letters with numbers, separated by commas. */
#ifndef TESTS_CHAOS_ORDERS_H
#define TESTS_CHAOS_ORDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct chaos;

/* Fills header->orders. `in_session`: the worker can send events and questions; `unique`: the id is
 * never used again, so that a second answer reaches no client; `may_make_session`: the answer may
 * name a new session. */
void orders_write(struct chaos *chaos, struct wire_header *header, bool in_session, bool unique,
                  bool may_make_session);

/* The size of a huge message, or of a small one soon after the last huge one. */
size_t orders_huge(struct chaos *chaos);

#endif
