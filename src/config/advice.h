/* Warnings about what a configuration allows and its author can hardly have meant. */
#ifndef STDIO_BUS_CONFIG_ADVICE_H
#define STDIO_BUS_CONFIG_ADVICE_H

#include "config/diagnostics.h"

/* Warns about the pools of a valid configuration. */
void advice_check(struct diagnostics *diagnostics, const struct json_value *root);

/* Warns about a key in which MCP clients keep their servers: the file is one of theirs. */
void advice_check_servers(struct diagnostics *diagnostics, const struct json_value *servers);

#endif
