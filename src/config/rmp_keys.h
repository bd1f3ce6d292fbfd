/* The object "rmp": the RMP topic bus. */
#ifndef STDIO_BUS_CONFIG_RMP_KEYS_H
#define STDIO_BUS_CONFIG_RMP_KEYS_H

#include "config/access.h"
#include "rmp/frame.h"
#include "rmp/schemas.h"

struct rmp_config {
    bool enabled;                 /* the object is there */
    char *socket_path;            /* as written; NULL: not set, or empty */
    char *sockets_dir;            /* the same */
    uint32_t max_body;            /* bytes of a frame's body */
    uint64_t max_ttl_ms;          /* a longer one is invalid */
    unsigned metrics_interval_ms; /* 0: no metrics are published */
    bool validate;                /* the bodies of the JSON dialect too */
    struct access ui;             /* its uids may be of the kinds ui and tui; none: nobody may */
    struct rmp_schemas schemas;   /* with the additions */

    /* the events of runs that are kept */
    unsigned history_events;  /* of a run; 0: none */
    size_t history_run_bytes; /* of a run */
    unsigned history_runs;
    size_t history_bytes; /* of all runs */
    unsigned history_sec; /* after its last event a run is forgotten */
    char *history;        /* the directory of their files, as written; NULL: not set, or empty */
    bool history_sync;    /* fsync each write */
};

#define RMP_HISTORY_PATH_MAX 512 /* bytes of the directory, NUL included */

#define RMP_CONFIG_DEFAULT                                                                         \
    {                                                                                              \
        .max_body = RMP_MAX_BODY, .max_ttl_ms = 3600000, .metrics_interval_ms = 1000,              \
        .validate = true, .history_events = 1000, .history_run_bytes = (size_t)1 << 20,            \
        .history_runs = 4096, .history_bytes = (size_t)16 << 20, .history_sec = 86400              \
    }

void rmp_keys_check(struct diagnostics *diagnostics, const struct json_value *rmp);

/* Reads the keys of a valid object, or of none (NULL), into a struct with the defaults.
 * STDIO_BUS_ERR if out of memory, or if a name is not found that was found before; errno may have
 * the reason. rmp_keys_free in any case. */
int rmp_keys_read(struct rmp_config *config, const struct json_value *rmp);

/* As if no directory for the files of the history were set. */
void rmp_keys_drop_history(struct rmp_config *config);

/* A zeroed one is fine. */
void rmp_keys_free(struct rmp_config *config);

#endif
