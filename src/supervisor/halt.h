/* Processes that a user ends, of all pools: once what is in flight is answered, at most HALT_MS
 * later. Until then they get nothing new: messages wait for the next process, to which the
 * handshake is repeated (supervisor/replay.h), or for the end of the bus. */
#ifndef STDIO_BUS_SUPERVISOR_HALT_H
#define STDIO_BUS_SUPERVISOR_HALT_H

#include "bus/state.h"
#include "process/worker.h"

#define HALT_MS 5000

/* Ends the processes. HALT_RESTART: the next ones are started at once, unless no client needs one;
 * what has failed or waits for its restart is started now. HALT_REST: they are asleep until a
 * message needs them, as supervisor/sleep.h has it. HALT_END: they run until the caller stops the
 * bus, when halt_is_awaited says no. Returns how many processes there are. */
size_t halt_processes(struct stdio_bus *bus, enum worker_halt halt);

/* Whether a process is still to answer. */
bool halt_is_awaited(const struct stdio_bus *bus);

/* timer_fn: looks whether the worker's process can be ended. */
void halt_look(void *user_data);

#endif
