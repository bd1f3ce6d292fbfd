/* The first answer of a worker in a pool without a protocol: it shows an MCP server or an ACP
 * agent, whose messages get lost there. */
#ifndef STDIO_BUS_BUS_FIRST_ANSWER_H
#define STDIO_BUS_BUS_FIRST_ANSWER_H

#include "config/pool_mode.h"
#include "process/worker.h"

/* Whether the workers of such a pool are looked at. */
static inline bool first_answer_matters(const struct pool_mode *mode)
{
    return mode->protocol == PROTOCOL_UNKNOWN && mode->clients == CLIENTS_SHARED;
}

/* Warns, once for each pool, if the answer is that to "initialize". */
void first_answer_check(struct worker *worker, const struct message *answer);

#endif
