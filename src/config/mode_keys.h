/* Checks of keys that must fit the protocol of their pool. */
#ifndef STDIO_BUS_CONFIG_MODE_KEYS_H
#define STDIO_BUS_CONFIG_MODE_KEYS_H

#include "config/diagnostics.h"

/* "clients" and "on_worker_exit" of a pool, each one of its words. */
void mode_keys_check_clients(struct diagnostics *diagnostics, const struct json_value *clients);
void mode_keys_check_exit(struct diagnostics *diagnostics, const struct json_value *word);

#endif
