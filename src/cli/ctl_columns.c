#include "build_config.h"

#include "cli/ctl_columns.h"

#include <stddef.h>

#define TRAFFIC                                                                                    \
    {"messages_in", "IN", CTL_COUNT, 7, 0}, {"messages_out", "OUT", CTL_COUNT, 7, 0},              \
        {"bytes_in", "BYTES IN", CTL_BYTES, 8, 0},                                                 \
    {                                                                                              \
        "bytes_out", "BYTES OUT", CTL_BYTES, 8, 0                                                  \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, CTL_TEXT, 0, 0                                                                 \
    }

const struct ctl_column ctl_pool_columns[] = {
    {"pool", "POOL", CTL_TEXT, 0, 0},          {"protocol", "PROTOCOL", CTL_TEXT, 3, 0},
    {"sharing", "SHARING", CTL_TEXT, 4, 0},    {"running", "RUNNING", CTL_COUNT, 0, 0},
    {"instances", "OF", CTL_COUNT, 0, 0},      {"drained", "DRAINED", CTL_COUNT, 2, 0},
    {"failed", "FAILED", CTL_COUNT, 1, 0},     {"clients", "CLIENTS", CTL_COUNT, 5, 0},
    {"requests", "REQUESTS", CTL_COUNT, 1, 0}, {"sessions", "SESSIONS", CTL_COUNT, 6, 0},
    {"restarts", "RESTARTS", CTL_COUNT, 2, 0}, TRAFFIC,
    {"url", "URL", CTL_TEXT, 1, 14},           END,
};

const struct ctl_column ctl_worker_columns[] = {
    {"worker", "WORKER", CTL_NUMBER, 0, 0},
    {"pool", "POOL", CTL_TEXT, 0, 0},
    {"state", "STATE", CTL_TEXT, 0, 0},
    {"drained", "DRAINED", CTL_BOOLEAN, 2, 0},
    {"pid", "PID", CTL_PROCESS, 1, 0},
    {"runs_ms", "RUNS FOR", CTL_TIME, 2, 0},
    {"requests", "REQUESTS", CTL_COUNT, 1, 0},
    {"sessions", "SESSIONS", CTL_COUNT, 5, 0},
    {"restarts", "RESTARTS", CTL_COUNT, 3, 0},
    {"queue", "QUEUE", CTL_BYTES, 6, 0},
    TRAFFIC,
    {"held_for", "HELD FOR", CTL_TEXT, 4, 0},
    END,
};

const struct ctl_column ctl_client_columns[] = {
    {"client", "CLIENT", CTL_NUMBER, 0, 0},
    {"program", "PROGRAM", CTL_TEXT, 0, 0},
    {"kind", "KIND", CTL_TEXT, 5, 0},
    {"peer", "PEER", CTL_TEXT, 0, 24},
    {"pool", "POOL", CTL_TEXT, 3, 0},
    {"since_ms", "SINCE", CTL_TIME, 4, 0},
    {"requests", "REQUESTS", CTL_COUNT, 1, 0},
    {"sessions", "SESSIONS", CTL_COUNT, 6, 0},
    {"queue", "QUEUE", CTL_BYTES, 6, 0},
    TRAFFIC,
    {"held_ms", "HELD", CTL_TIME, 5, 0},
    {"held_for", "FOR", CTL_TEXT, 2, 0},
    END,
};

const struct ctl_column ctl_session_columns[] = {
    {"session", "SESSION", CTL_TEXT, 0, 0},
    {"client", "CLIENT", CTL_TEXT, 0, 0},
    {"worker", "WORKER", CTL_TEXT, 0, 0},
    END,
};

const struct ctl_column ctl_node_columns[] = {
    {"node", "NODE", CTL_TEXT, 0, 0},
    {"version", "VERSION", CTL_TEXT, 1, 0},
    {"since_ms", "SINCE", CTL_TIME, 0, 0},
    {"round_trip_us", "ROUND TRIP US", CTL_NUMBER, 0, 0},
    {"links", "LINKS", CTL_NUMBER, 0, 0},
    {"unacked_bytes", "UNACKED", CTL_NUMBER, 5, 0},
    {"declined", "DECLINED", CTL_NUMBER, 4, 0},
    {"lost", "LOST", CTL_NUMBER, 3, 0},
    {"id", "ID", CTL_TEXT, 2, 0},
    END,
};

const struct ctl_column ctl_request_columns[] = {
    {"request", "REQUEST", CTL_TEXT, 0, 0},
    {"from", "FROM", CTL_TEXT, 0, 0},
    {"to", "TO", CTL_TEXT, 0, 0},
    {"age_ms", "AGE", CTL_TIME, 0, 0},
    END,
};
