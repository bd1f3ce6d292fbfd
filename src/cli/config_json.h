/* stdio_bus --check-config --json. */
#ifndef STDIO_BUS_CLI_CONFIG_JSON_H
#define STDIO_BUS_CLI_CONFIG_JSON_H

#include "config/config.h"
#include "json/text.h"

/* Adds the pools of a configuration, as the list `pools` of the control socket has them, and their
 * number. If out of memory, text->failed. */
void config_json_write(struct json_text *text, const struct config *config);

#endif
