/* The key "rmp" of a pool: its workers serve the topic bus (topics/bridge.h). */
#ifndef STDIO_BUS_CONFIG_RMP_POOL_H
#define STDIO_BUS_CONFIG_RMP_POOL_H

#include "config/diagnostics.h"

#define RMP_AGENT_MAX 256 /* bytes of an agent's name */

struct rmp_pool {
    char *agent; /* the pool serves the requests on agent/<this>; NULL: none */
    bool runner; /* it is asked to run what is submitted on rlp/ctrl */
};

/* Whether the pool has the key, in a document that may be invalid. */
bool rmp_pool_present(const struct json_value *pool);

/* Checks the key's value: {"agent": NAME, "runner": true}, either or both. No two pools serve the
 * same agent, and one pool at most is the runner. */
void rmp_pool_check(struct diagnostics *diagnostics, const struct json_value *value);

/* Checks what one pool alone may say, against the pools before this one. */
void rmp_pool_check_unique(struct diagnostics *diagnostics, const struct json_value *pools,
                           const struct json_value *pool);

/* Reads the key of a valid pool. STDIO_BUS_ERR if out of memory. */
int rmp_pool_read(struct rmp_pool *rmp, const struct json_value *pool);

void rmp_pool_free(struct rmp_pool *rmp);

static inline bool rmp_pool_serves(const struct rmp_pool *rmp)
{
    return rmp->agent != NULL || rmp->runner;
}

#endif
