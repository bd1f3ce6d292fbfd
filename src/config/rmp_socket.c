#include "build_config.h"

#include "config/rmp_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/unix_path.h"
#include "config/variable.h"

#define IN_HOME "~/.runloop/sock"
#define IN_RUN "/run/runloop"

static int too_long(char reason[RMP_SOCKET_REASON_MAX], size_t len)
{
    snprintf(reason, RMP_SOCKET_REASON_MAX, UNIX_PATH_PROBLEM, len, UNIX_PATH_MAX);
    return STDIO_BUS_EINVAL;
}

int rmp_socket_expand(char to[RMP_SOCKET_MAX], const char *path, const char *name,
                      char reason[RMP_SOCKET_REASON_MAX])
{
    char why[VARIABLE_PROBLEM_MAX];
    int len = variable_expand_path(to, RMP_SOCKET_MAX, path, why);
    size_t name_len = strlen(name);

    if (len < 0) {
        snprintf(reason, RMP_SOCKET_REASON_MAX, "%s", why);
        return STDIO_BUS_EINVAL;
    }
    if ((size_t)len + name_len >= RMP_SOCKET_MAX)
        return too_long(reason, (size_t)len + name_len);
    memcpy(to + len, name, name_len + 1);
    return STDIO_BUS_OK;
}

/* The path that is set, if one is: *set. */
static int expand_set(char to[RMP_SOCKET_MAX], const struct rmp_place *place, bool *set,
                      char reason[RMP_SOCKET_REASON_MAX])
{
    const char *given = place->given;

    *set = true;
    if (given != NULL && strlen(given) >= RMP_SOCKET_MAX)
        return too_long(reason, strlen(given));
    if (given != NULL) {
        memcpy(to, given, strlen(given) + 1);
        return STDIO_BUS_OK;
    }
    if (place->socket_path != NULL)
        return rmp_socket_expand(to, place->socket_path, "", reason);
    if (place->sockets_dir != NULL)
        return rmp_socket_expand(to, place->sockets_dir, RMP_SOCKET_NAME, reason);
    *set = false;
    return STDIO_BUS_OK;
}

/* Whether a socket can be made at this path. */
static bool is_usable(char path[RMP_SOCKET_MAX])
{
    char *slash;
    bool usable;

    if (!directories_make_above(path))
        return false;
    slash = strrchr(path, '/');
    *slash = '\0';
    usable = access(path, W_OK | X_OK) == 0;
    *slash = '/';
    return usable;
}

int rmp_socket_make(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX])
{
    bool set;
    int status = expand_set(to, place, &set, reason);

    if (status != STDIO_BUS_OK)
        return status;
    if (set && directories_make_above(to))
        return STDIO_BUS_OK;
    if (!set &&
        ((rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK &&
          is_usable(to)) ||
         (rmp_socket_expand(to, IN_RUN, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK && is_usable(to))))
        return STDIO_BUS_OK;
    snprintf(reason, RMP_SOCKET_REASON_MAX, "cannot make the directory of %s%s: %s", to,
             set ? "" : ", nor " IN_HOME, strerror(errno));
    return STDIO_BUS_EINVAL;
}

int rmp_socket_find(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX])
{
    bool set;
    int status = expand_set(to, place, &set, reason);

    if (status != STDIO_BUS_OK || set)
        return status;
    if (rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK &&
        access(to, F_OK) == 0)
        return STDIO_BUS_OK;
    if (access(IN_RUN RMP_SOCKET_NAME, F_OK) == 0)
        return rmp_socket_expand(to, IN_RUN, RMP_SOCKET_NAME, reason);
    return rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason);
}
