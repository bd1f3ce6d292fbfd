/* What requests tell the workers to do: letters with numbers, with commas between them. */
#ifndef TESTS_CHAOS_ORDERS_H
#define TESTS_CHAOS_ORDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct chaos;

/* Fills header->orders. `in_session`: there is somebody to be told and asked something; `unique`:
 * the id is never used again, so that a second answer to it reaches nobody; `may_make_session`: its
 * answer may tell one. */
void orders_write(struct chaos *chaos, struct wire_header *header, bool in_session, bool unique,
                  bool may_make_session);

/* The size of a huge message, or of a small one if there were too many huge ones lately. */
size_t orders_huge(struct chaos *chaos);

#endif
