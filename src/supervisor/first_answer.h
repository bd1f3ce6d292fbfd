/* The first answer of a worker. In a pool without a protocol it shows an MCP server or an ACP
 * agent, whose messages get lost there. From a daemon that was dialled it may be the reason for
 * which that refuses the connection. Where clients share processes, it ends the time in which what
 * had exited early (early_exit.h) was not started again. */
#ifndef STDIO_BUS_SUPERVISOR_FIRST_ANSWER_H
#define STDIO_BUS_SUPERVISOR_FIRST_ANSWER_H

#include "config/pool_mode.h"
#include "process/worker.h"

/* Whether the workers of such a pool are looked at. */
static inline bool first_answer_matters(const struct pool_mode *mode)
{
    return mode->is_front || (mode->protocol == PROTOCOL_MCP && mode->clients == CLIENTS_STICKY) ||
           (mode->protocol == PROTOCOL_UNKNOWN && mode->clients == CLIENTS_SHARED);
}

/* Warns, once for each pool without a protocol, if the answer is that to "initialize". Logs a
 * daemon's refusal. */
void first_answer_check(struct worker *worker, const struct message *answer);

/* Notes and logs it, if a daemon that was dialled refuses the connection with this message. */
void first_answer_check_refusal(struct worker *worker, const struct message *answer);

/* The front of a shared server: stops it after this answer, if that is the error of a server that
 * could not start, and logs what that has written to stderr. */
void first_answer_check_failure(struct worker *worker, const struct message *answer);

#endif
