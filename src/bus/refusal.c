#include "build_config.h"

#include "bus/refusal.h"

#include <stddef.h>
#include <string.h>

const char *const refusal_names[REFUSALS] = {
    [REFUSAL_NOT_ALLOWED] = "not_allowed", [REFUSAL_NO_TOKEN] = "no_token",
    [REFUSAL_MALFORMED] = "malformed",     [REFUSAL_CONNECTIONS] = "max_connections",
    [REFUSAL_SESSIONS] = "max_sessions",   [REFUSAL_REQUESTS] = "max_pending_requests",
    [REFUSAL_NO_WORKER] = "no_worker",     [REFUSAL_BUSY] = "busy",
    [REFUSAL_ID_IN_USE] = "id_in_use",     [REFUSAL_NO_POOL] = "no_pool",
    [REFUSAL_TOO_LONG] = "too_long",       [REFUSAL_UNROUTABLE] = "unroutable",
    [REFUSAL_CLOSING] = "closing",         [REFUSAL_OTHER] = "other",
};

/* What the texts begin with. */
static const struct {
    const char *beginning;
    enum refusal_reason refusal;
} texts[] = {
    {"this user may not connect", REFUSAL_NOT_ALLOWED},
    {"other machines are not served", REFUSAL_NOT_ALLOWED},
    {"too many connections", REFUSAL_CONNECTIONS},
    {"too many sessions", REFUSAL_SESSIONS},
    {"too many pending requests", REFUSAL_REQUESTS},
    {"no worker left", REFUSAL_NO_WORKER},
    {"every worker serves another client", REFUSAL_BUSY},
    {"id is ", REFUSAL_ID_IN_USE},
    {"no such pool", REFUSAL_NO_POOL},
    {"the message is longer", REFUSAL_TOO_LONG},
    {"message exceeds", REFUSAL_TOO_LONG},
    {"unroutable", REFUSAL_UNROUTABLE},
    {"the daemon is shutting down", REFUSAL_CLOSING},
};

enum refusal_reason refusal_of(const char *text)
{
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strncmp(text, texts[i].beginning, strlen(texts[i].beginning)) == 0)
            return texts[i].refusal;
    }
    return REFUSAL_OTHER;
}
