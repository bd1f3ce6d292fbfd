/* The elements of the lists (monitor/lists.h), as JSON. */
#ifndef STDIO_BUS_MONITOR_ROWS_H
#define STDIO_BUS_MONITOR_ROWS_H

#include <sys/types.h>

#include "bus/service.h"
#include "json/text.h"

/* Times are in milliseconds, memory in bytes. Strings are borrowed; NULL: null. */

struct pool_report {
    struct slice id;
    struct slice url;               /* without a query; data NULL: it has none */
    const char *protocol, *clients; /* as in the configuration */
    size_t instances, running, drained, failed, connected; /* the last: clients of its own */
    size_t requests, sessions, queue;
    uint64_t starts, restarts;
    struct traffic traffic;
};

struct worker_report {
    unsigned number;
    const char *pool, *state;
    bool drained, leaving;
    pid_t pid;       /* 0: none */
    int64_t runs_ms; /* -1: it does not run */
    size_t clients, requests, sessions, queue;
    uint64_t starts, restarts, sleeps;
    struct traffic traffic;
    struct hold_report hold;
};

struct session_report {
    struct slice id;
    const char *worker, *client;
};

struct request_report {
    struct slice id; /* as its asker has it */
    const char *from, *to;
    int64_t age_ms;
};

void rows_pool(struct json_text *to, const struct pool_report *pool);
void rows_worker(struct json_text *to, const struct worker_report *worker);
void rows_client(struct json_text *to, const struct client_report *client);
void rows_session(struct json_text *to, const struct session_report *session);
void rows_pending(struct json_text *to, const struct request_report *request);

#endif
