/* Who is bound to whom, in sticky and exclusive pools. */
#ifndef TESTS_CHAOS_CHECK_BOUND_H
#define TESTS_CHAOS_CHECK_BOUND_H

#include <stdint.h>

struct chaos;
struct client;
struct incarnation;

/* A message has gone from one to the other, whichever way: may it? */
void check_bound(struct chaos *chaos, struct incarnation *worker, uint64_t conn);

/* The client of an exclusive pool's worker, or NULL where that is not certain. */
const struct client *check_lone_client(const struct chaos *chaos,
                                       const struct incarnation *worker);

#endif
