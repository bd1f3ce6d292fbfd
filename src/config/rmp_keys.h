/* The object "rmp": the RMP topic bus. */
#ifndef STDIO_BUS_CONFIG_RMP_KEYS_H
#define STDIO_BUS_CONFIG_RMP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/unix_path.h"
#include "config/access.h"
#include "config/keys.h"
#include "rmp/frame.h"
#include "rmp/schemas.h"

#define RMP_HISTORY_MAX 65536      /* events of a run, and runs */
#define RMP_HISTORY_BYTES_MIN 4096 /* of a run, and of all */

/* The integers, as in base/limits.h. */
#define RMP_NUMBERS(LIMIT)                                                                         \
    LIMIT(uint32_t, max_body, 1, LIMIT_GIB, RMP_MAX_BODY, "Bytes of the body of a frame.")         \
    LIMIT(uint64_t, max_ttl_ms, 1, 31536000000, 3600000, "The longest time to live of a message.") \
    LIMIT(unsigned, metrics_interval_ms, 0, 3600000, 1000,                                         \
          "How often the counters are published; 0: never.")                                       \
    LIMIT(unsigned, history_events, 0, RMP_HISTORY_MAX, 1000,                                      \
          "Events that are kept of a run; 0: none.")                                               \
    LIMIT(size_t, history_run_bytes, RMP_HISTORY_BYTES_MIN, LIMIT_GIB, (size_t)1 << 20,            \
          "Bytes of the events of a run.")                                                         \
    LIMIT(unsigned, history_runs, 1, RMP_HISTORY_MAX, 4096, "Runs whose events are kept.")         \
    LIMIT(size_t, history_bytes, RMP_HISTORY_BYTES_MIN, LIMIT_GIB, (size_t)16 << 20,               \
          "Bytes of the events of all runs.")                                                      \
    LIMIT(unsigned, history_sec, 1, 31536000, 86400, "How long a run is kept after its last event.")

struct rmp_config {
    bool enabled;               /* the object is there */
    char *socket_path;          /* as written; NULL: not set, or empty */
    char *sockets_dir;          /* the same */
    bool validate;              /* the bodies of the JSON dialect too */
    struct access ui;           /* its uids may be of the kinds ui and tui; none: nobody may */
    struct rmp_schemas schemas; /* with the additions */
    char *history;     /* the directory of their files, as written; NULL: not set, or empty */
    bool history_sync; /* fsync each write */
    RMP_NUMBERS(LIMIT_MEMBER)
};

#define RMP_HISTORY_PATH_MAX 512 /* bytes of the directory, NUL included */

#define RMP_CONFIG_DEFAULT                                                                         \
    {                                                                                              \
        RMP_NUMBERS(LIMIT_STANDARD).validate = true                                                \
    }

/* The table of the object; its sub-objects are allocated by rmp_keys_read. */
extern const struct key_table rmp_keys;

/* Reads the keys of a valid object, or of none (NULL), into a struct with the defaults.
 * STDIO_BUS_ERR if out of memory, or if a name is not found that was found before; errno may have
 * the reason. rmp_keys_free in any case. */
int rmp_keys_read(struct rmp_config *config, const struct json_value *rmp);

/* Whether the keys are others, as far as they are numbers, paths and switches. */
bool rmp_keys_differ(const struct rmp_config *before, const struct rmp_config *after);

/* As if no directory for the files of the history were set. */
void rmp_keys_drop_history(struct rmp_config *config);

/* A zeroed one is fine. */
void rmp_keys_free(struct rmp_config *config);

/* --- rmp socket --- */

/* The place of the RMP socket (rmp-v0 12). The first that is set counts: the path of the command
 * line, rmp.socket_path, rmp.sockets_dir. Without them: ~/.runloop/sock/rmp.sock, or
 * /run/runloop/rmp.sock where that directory cannot be used. */

#define RMP_SOCKET_NAME "/rmp.sock"
#define RMP_SOCKET_MAX ((size_t)UNIX_PATH_SIZE)
#define RMP_SOCKET_REASON_MAX 256

/* Replaces "~/" at the beginning of `path` and its $NAME or ${NAME}, and appends `name`.
 * STDIO_BUS_EINVAL with `reason`: a variable is not set, or no socket can have so long a path. */
int rmp_socket_expand(char to[RMP_SOCKET_MAX], const char *path, const char *name,
                      char reason[RMP_SOCKET_REASON_MAX]);

/* What is set; NULL: not. */
struct rmp_place {
    const char *given;       /* of the command line, taken as it is */
    const char *socket_path; /* of the configuration, with variables */
    const char *sockets_dir; /* the same */
};

/* The path to listen on. Missing directories are made, for this user alone. STDIO_BUS_EINVAL with
 * `reason`. */
int rmp_socket_make(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX]);

/* The path to connect to, by the same rule; nothing is made. Without a set path: the first of the
 * usual ones that is there, else the first of them. */
int rmp_socket_find(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX]);

#endif
