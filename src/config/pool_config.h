/* A pool of workers: the keys of an object of "pools". */
#ifndef STDIO_BUS_CONFIG_POOL_CONFIG_H
#define STDIO_BUS_CONFIG_POOL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "config/keys.h"
#include "config/pool_mode.h"
#include "framing/framing.h"

#define POOL_ID_MAX 256   /* bytes of an id */
#define RMP_AGENT_MAX 256 /* bytes of an agent's name */

/* The key "rmp": the workers serve the topic bus (topics/bridge.h). */
struct rmp_pool {
    char *agent; /* the pool serves the requests on agent/<this>; NULL: none */
    bool runner; /* it is asked to run what is submitted on rlp/ctrl */
};

static inline bool rmp_pool_serves(const struct rmp_pool *rmp)
{
    return rmp->agent != NULL || rmp->runner;
}

struct pool_config {
    char *id;
    char *command; /* as written: a path, or a name looked up in PATH as by execvp; NULL: none, */
    char *url;     /* the workers are clients of the server there; NULL: none */
    char **argv;   /* argv[0] is command, or this program; NULL-terminated */
    char **envp;   /* the workers' whole environment */
    char *cwd;     /* their working directory, relative to the daemon's; NULL: the daemon's */
    unsigned instances;
    bool no_new_privs;             /* no program that they run gains rights */
    bool no_core;                  /* they leave no core files */
    bool is_remote;                /* other machines serve it over NATS */
    bool overflows;                /* the same, when its own workers are taken */
    bool is_exported;              /* other machines reach it over NATS ("nats") */
    bool logs_stderr;              /* the daemon reads their stderr, and logs it */
    const struct framing *framing; /* NULL: NDJSON */
    bool skip_bad_output;          /* a worker's output that is no message is skipped */
    struct pool_mode mode;
    struct rmp_pool rmp;
};

extern const struct key_table pool_config_keys;

/* Checks the array of all pools. */
void pools_check(struct diagnostics *diagnostics, const struct json_value *pools);

/* Warns about what valid pools may be, and their author can hardly have meant. */
void pools_advise(struct diagnostics *diagnostics, const struct json_value *pools);

/* Reads a valid pool into a zeroed struct. False: out of memory; pool_config_free in any case. */
bool pool_config_read(struct pool_config *pool, const struct json_value *object);

/* Reads the mode alone. The protocol sets the keys that are missing. */
void pool_config_mode(struct pool_mode *mode, const struct json_value *pool);

/* How many workers the pool has, which may be invalid; without the key, its default. */
unsigned pool_config_instances(const struct json_value *pool);

/* What a reload does with a pool. */
enum key_change pool_config_difference(const struct pool_config *before,
                                       const struct pool_config *after);

/* A zeroed one is fine. */
void pool_config_free(struct pool_config *pool);

#endif
