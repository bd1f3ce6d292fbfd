/* The configuration without --config: at a path of the system's, or of the user's. */
#ifndef STDIO_BUS_CLI_DEFAULT_CONFIG_H
#define STDIO_BUS_CLI_DEFAULT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define SYSTEM_CONFIG "/etc/stdio_bus/stdio_bus.json"
#define USER_CONFIG "stdio_bus/stdio_bus.json" /* in $XDG_CONFIG_HOME, by default ~/.config */

#define DEFAULT_CONFIG_MAX 1024

/* Writes the path of the first of them that the user may read: `system`, then the user's own.
 * False: there is none; `to` is then "". */
bool default_config_find(char to[DEFAULT_CONFIG_MAX], const char *system);

#endif
