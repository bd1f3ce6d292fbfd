/* Checks the bindings of clients and workers in sticky and exclusive pools. */
#ifndef TESTS_CHAOS_CHECK_BOUND_H
#define TESTS_CHAOS_CHECK_BOUND_H

#include <stdint.h>

#include "ledger.h"

struct chaos;
struct incarnation;

/* Checks a message between the two, in either direction. */
void check_bound(struct chaos *chaos, struct incarnation *worker, unsigned long long conn);

/* Notes that a message in a session has reached a worker of a sticky pool. */
void check_session_seen(const struct chaos *chaos, struct incarnation *worker,
                        const struct entry *entry);

/* Notes that an answer has named a session to its client. */
void check_session_named(struct chaos *chaos, struct incarnation *worker, const char *name,
                         unsigned long long conn);

/* The connection that gets an event or a question of a worker; 0: uncertain. */
unsigned long long check_receiver(const struct chaos *chaos, struct incarnation *worker,
                                  const struct session *session);

/* A question without a session, from a worker of a sticky pool: enters its possible clients. */
void check_askers(const struct chaos *chaos, const struct incarnation *worker,
                  struct entry *question);

/* An event without a session: expected by all clients known to be bound to the worker. */
void check_to_all(struct chaos *chaos, const struct incarnation *worker, const struct entry *event,
                  bool calm);

#endif
