/* MCP: the daemon asks the first stateless process of a pool which era its server serves, with a
 * server/discover of its own, and swallows the answer. Clients of that era wait until then: to the
 * router the worker is away (router/eras.h). */
#ifndef STDIO_BUS_SUPERVISOR_PROBE_H
#define STDIO_BUS_SUPERVISOR_PROBE_H

#include "bus/state.h"
#include "process/worker.h"
#include "json/message.h"

/* Sends the probe if the worker needs one and was not sent it yet. Returns whether it was sent now:
 * its first answer goes to probe_take_answer. */
bool probe_begin(struct worker *worker);

void probe_take_answer(struct worker *worker, const struct message *answer);

/* The process has exited. */
void probe_process_ended(struct worker *worker);

/* timer_fn of worker->probe: the answer did not come in time. */
void probe_expired(void *user_data);

#endif
