#include "build_config.h"

#include "config/parts.h"

#include <stdio.h>

const char *const part_names[PARTS] = {
    [PART_HTTP] = "http",       [PART_PAGE] = "page",       [PART_RMP] = "rmp",
    [PART_NATS] = "nats",       [PART_CONTROL] = "control", [PART_RELOAD] = "reload",
    [PART_UPGRADE] = "upgrade", [PART_REMOTE] = "remote",   [PART_SHARE] = "share",
    [PART_DOCTOR] = "doctor",
};

bool part_is_in(enum part part)
{
    static const bool in[PARTS] = {
        [PART_HTTP] = WITH_HTTP,       [PART_PAGE] = WITH_PAGE,       [PART_RMP] = WITH_RMP,
        [PART_NATS] = WITH_NATS,       [PART_CONTROL] = WITH_CONTROL, [PART_RELOAD] = WITH_RELOAD,
        [PART_UPGRADE] = WITH_UPGRADE, [PART_REMOTE] = WITH_REMOTE,   [PART_SHARE] = WITH_SHARE,
        [PART_DOCTOR] = WITH_DOCTOR,
    };

    return in[part];
}

const char *part_missing(char text[PART_MISSING_MAX], enum part part)
{
    if (part_is_in(part))
        return NULL;
    (void)snprintf(text, PART_MISSING_MAX, "built without %s", part_names[part]);
    return text;
}
