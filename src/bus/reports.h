/* Counts and reports that a client has come, or is gone; that a worker runs, or has ended. The
 * services that watch the bus get the reports (bus/service.h). */
#ifndef STDIO_BUS_BUS_REPORTS_H
#define STDIO_BUS_BUS_REPORTS_H

#include "bus/state.h"
#include "process/worker.h"

/* Any of the texts may be NULL but the name. */
void reports_send(struct stdio_bus *bus, const char *name, const char *of, const char *pool,
                  const char *text);

/* A client of a connection, with its number. */
void reports_client_came(struct stream *client, unsigned number, const struct origin *origin);
void reports_client_gone(struct stream *client, unsigned number, const char *reason);

/* A client with connections of its own; `of`: whose connection has begun it. */
void reports_session_came(struct endpoint *session, const char *of);
void reports_session_gone(struct endpoint *session, const char *reason);

void reports_worker_started(struct worker *worker);
void reports_worker_finished(struct worker *worker);

#endif
