/* Sleep: the process of a worker that is not called for idle_stop_sec is ended in order. Its
 * clients stay; the next message for it wakes it (waiting_call, pool_supply), and the handshake is
 * repeated (supervisor/replay.h). */
#ifndef STDIO_BUS_SUPERVISOR_SLEEP_H
#define STDIO_BUS_SUPERVISOR_SLEEP_H

#include "process/worker.h"

struct stdio_bus;

/* The process takes messages, or its pool may have another idle_stop_sec: its time begins. */
void sleep_begin(struct worker *worker);

/* timer_fn: looks whether a message has passed since the last look, four times in idle_stop_sec,
 * and ends the process if it has been idle for so long. */
void sleep_look(void *user_data);

/* The programs of all servers may have changed: those that are asleep and have clients are woken,
 * which compares their lists with the remembered ones; what is remembered of a pool without
 * processes and clients is forgotten, and in any pool that the server refuses the stateless era. */
void sleep_renew(struct stdio_bus *bus);

/* No message comes any more from the process there was. */
void sleep_process_ended(struct worker *worker);

#endif
