/* The process of a client has exited, and another one takes its place. A server of MCP knows its
 * client from the handshake: initialize, notifications/initialized and logging/setLevel. The daemon
 * has kept these messages (router/handshake.h), sends them to the new process and swallows the
 * answers. The client's messages wait until then: to the router the worker is still away.
 *
 * Where that cannot be done, or is not wanted, the client is closed. */
#ifndef STDIO_BUS_SUPERVISOR_REPLAY_H
#define STDIO_BUS_SUPERVISOR_REPLAY_H

#include "process/worker.h"
#include "json/message.h"

/* A process of the worker has exited. Closes the client for which no other one will do. */
void replay_process_ended(struct worker *worker);

/* The worker has failed: no process will take the place. */
void replay_worker_failed(struct worker *worker);

/* A new process of the worker runs. Returns whether it gets a handshake: then it takes messages
 * only after the answers, which go to replay_take_answer. */
bool replay_begin(struct worker *worker);

/* Takes an answer to a message of the handshake. Returns false if the message is none. */
bool replay_take_answer(struct worker *worker, const struct message *message);

/* Whether the clients of the worker can continue with another process: it would get their
 * handshake, which is complete. */
bool replay_can_move(const struct worker *worker);

/* Whether answers are still to come. */
bool replay_runs(const struct worker *worker);

/* timer_fn of worker->replay: the answers did not come in time. */
void replay_expired(void *user_data);

#endif
