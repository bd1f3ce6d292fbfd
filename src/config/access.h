/* Which users may connect to the Unix socket: the keys "mode", "group" and "allow_uids" of
 * "listen". */
#ifndef STDIO_BUS_CONFIG_ACCESS_H
#define STDIO_BUS_CONFIG_ACCESS_H

#include <sys/types.h>

#include "config/diagnostics.h"

#define ACCESS_MODE_DEFAULT 0600

#define ACCESS_ID_SCHEMA                                                                           \
    "\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"integer\", \"minimum\": 0, "                 \
    "\"maximum\": 4294967294}]"
#define ACCESS_UIDS_SCHEMA "\"type\": \"array\", \"minItems\": 1, \"items\": {" ACCESS_ID_SCHEMA "}"

struct access {
    bool has_mode;
    mode_t mode; /* of the socket; ACCESS_MODE_DEFAULT without has_mode */
    bool has_group;
    gid_t group;      /* of the socket; else as the system sets it */
    uid_t *uids;      /* the users that are served */
    size_t uid_count; /* 0: every user that can connect */
};

/* For the user of the daemon alone. */
#define ACCESS_OWNER                                                                               \
    {                                                                                              \
        .has_mode = true, .mode = ACCESS_MODE_DEFAULT                                              \
    }

void access_check_mode(struct diagnostics *diagnostics, const struct json_value *mode);
void access_check_group(struct diagnostics *diagnostics, const struct json_value *group);
void access_check_uids(struct diagnostics *diagnostics, const struct json_value *uids);

/* Reads the keys of a valid object "listen", or of none (NULL). STDIO_BUS_ERR if out of memory, or
 * if a name is not found that was found before; errno may have the reason. access_free in any
 * case. */
int access_read(struct access *access, const struct json_value *listen);

/* Reads the users of a valid array, in the same way. */
int access_read_uids(struct access *access, const struct json_value *uids);

/* A zeroed one is fine. */
void access_free(struct access *access);

/* Whether the user is served. */
bool access_allows(const struct access *access, uid_t uid);

/* Whether a socket of the file system gets another mode or group. */
bool access_differs(const struct access *before, const struct access *after);

/* Whether a key that is for Unix sockets only was given. */
static inline bool access_is_set(const struct access *access)
{
    return access->has_mode || access->has_group || access->uid_count > 0;
}

#endif
