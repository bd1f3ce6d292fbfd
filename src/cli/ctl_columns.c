#include "build_config.h"

#include "cli/ctl_columns.h"

#include <stddef.h>

#define TRAFFIC                                                                                    \
    {"messages_in", "IN", CTL_NUMBER}, {"messages_out", "OUT", CTL_NUMBER},                        \
        {"bytes_in", "BYTES IN", CTL_BYTES},                                                       \
    {                                                                                              \
        "bytes_out", "BYTES OUT", CTL_BYTES                                                        \
    }

const struct ctl_column ctl_pool_columns[] = {
    {"pool", "POOL", CTL_TEXT},
    {"protocol", "PROTOCOL", CTL_TEXT},
    {"sharing", "CLIENTS ARE", CTL_TEXT},
    {"running", "RUNNING", CTL_NUMBER},
    {"instances", "OF", CTL_NUMBER},
    {"drained", "DRAINED", CTL_NUMBER},
    {"failed", "FAILED", CTL_NUMBER},
    {"requests", "REQUESTS", CTL_NUMBER},
    {"sessions", "SESSIONS", CTL_NUMBER},
    {"restarts", "RESTARTS", CTL_NUMBER},
    TRAFFIC,
    {NULL, NULL, CTL_TEXT},
};

const struct ctl_column ctl_worker_columns[] = {
    {"worker", "WORKER", CTL_NUMBER},
    {"pool", "POOL", CTL_TEXT},
    {"state", "STATE", CTL_TEXT},
    {"drained", "DRAINED", CTL_BOOLEAN},
    {"pid", "PID", CTL_PROCESS},
    {"runs_ms", "RUNS FOR", CTL_TIME},
    {"requests", "REQUESTS", CTL_NUMBER},
    {"sessions", "SESSIONS", CTL_NUMBER},
    {"restarts", "RESTARTS", CTL_NUMBER},
    {"queue", "QUEUE", CTL_BYTES},
    TRAFFIC,
    {"held_for", "HELD FOR", CTL_TEXT},
    {NULL, NULL, CTL_TEXT},
};

const struct ctl_column ctl_client_columns[] = {
    {"client", "CLIENT", CTL_NUMBER},
    {"kind", "KIND", CTL_TEXT},
    {"peer", "PEER", CTL_TEXT},
    {"pool", "POOL", CTL_TEXT},
    {"since_ms", "SINCE", CTL_TIME},
    {"requests", "REQUESTS", CTL_NUMBER},
    {"sessions", "SESSIONS", CTL_NUMBER},
    {"queue", "QUEUE", CTL_BYTES},
    TRAFFIC,
    {"held_ms", "HELD", CTL_TIME},
    {"held_for", "FOR", CTL_TEXT},
    {NULL, NULL, CTL_TEXT},
};

const struct ctl_column ctl_session_columns[] = {
    {"session", "SESSION", CTL_TEXT},
    {"client", "CLIENT", CTL_TEXT},
    {"worker", "WORKER", CTL_TEXT},
    {NULL, NULL, CTL_TEXT},
};

const struct ctl_column ctl_request_columns[] = {
    {"request", "REQUEST", CTL_TEXT}, {"from", "FROM", CTL_TEXT}, {"to", "TO", CTL_TEXT},
    {"age_ms", "AGE", CTL_TIME},      {NULL, NULL, CTL_TEXT},
};
