/* Who is bound to whom, in sticky and exclusive pools. */
#ifndef TESTS_CHAOS_CHECK_BOUND_H
#define TESTS_CHAOS_CHECK_BOUND_H

#include <stdint.h>

#include "ledger.h"

struct chaos;
struct incarnation;

/* A message has gone from one to the other, whichever way: may it? */
void check_bound(struct chaos *chaos, struct incarnation *worker, uint64_t conn);

/* A message in a session has reached a sticky pool's worker. */
void check_heard_of(const struct chaos *chaos, struct incarnation *worker,
                    const struct entry *entry);

/* An answer of a worker's has told its client of a session. */
void check_learned(struct chaos *chaos, struct incarnation *worker, const char *name,
                   uint64_t conn);

/* Who gets an event or a question of a worker, as far as that is certain: a connection, or 0. */
uint64_t check_listener(const struct chaos *chaos, struct incarnation *worker,
                        const struct session *session);

/* A question in no session, of a sticky pool's worker: fills in whom it could be for. */
void check_askers(const struct chaos *chaos, const struct incarnation *worker,
                  struct entry *question);

/* An event in no session: expected by all clients who are certain to be bound to the worker. */
void check_to_all(struct chaos *chaos, const struct incarnation *worker,
                  const struct entry *event, bool calm);

#endif
