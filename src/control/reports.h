/* What the control socket reports: the elements of its lists, and events, as JSON. */
#ifndef STDIO_BUS_CONTROL_REPORTS_H
#define STDIO_BUS_CONTROL_REPORTS_H

#include <sys/types.h>

#include "bus/service.h"
#include "json/text.h"

/* Times are in milliseconds, memory in bytes. Strings are borrowed; NULL: null. */

struct pool_report {
    struct slice id;
    const char *protocol, *clients;                        /* as in the configuration */
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
    uint64_t starts, restarts;
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

struct event_report {
    uint64_t epoch_ms;
    const char *name;
    const char *of;   /* "client=3", "worker=2 pid=71" */
    const char *pool; /* NULL: there is none, as with the next */
    const char *text;
};

void control_write_pool(struct json_text *to, const struct pool_report *pool);
void control_write_worker(struct json_text *to, const struct worker_report *worker);
void control_write_client(struct json_text *to, const struct client_report *client);
void control_write_session(struct json_text *to, const struct session_report *session);
void control_write_pending(struct json_text *to, const struct request_report *request);

/* A notification, with its newline. */
void control_write_event(struct json_text *to, const struct event_report *event);

#endif
