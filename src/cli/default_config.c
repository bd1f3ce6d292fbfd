#include "build_config.h"

#include "cli/default_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_readable(char to[DEFAULT_CONFIG_MAX], const char *directory, const char *between,
                        const char *file)
{
    int len = snprintf(to, DEFAULT_CONFIG_MAX, "%s%s%s", directory, between, file);

    if (len > 0 && len < DEFAULT_CONFIG_MAX && access(to, R_OK) == 0)
        return true;
    to[0] = '\0';
    return false;
}

bool default_config_find(char to[DEFAULT_CONFIG_MAX], const char *system)
{
    const char *config_home = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (is_readable(to, system, "", ""))
        return true;
    if (config_home != NULL && config_home[0] == '/') /* a relative one does not count */
        return is_readable(to, config_home, "/", USER_CONFIG);
    return home != NULL && home[0] == '/' && is_readable(to, home, "/.config/", USER_CONFIG);
}
