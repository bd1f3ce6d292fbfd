/* The keys of a pool that other machines serve, or are served by. */
#ifndef STDIO_BUS_CONFIG_POOL_NATS_H
#define STDIO_BUS_CONFIG_POOL_NATS_H

#include "config/diagnostics.h"

/* Check "export" (and the id, for all keys), and "remote". */
void pool_nats_check_export(struct diagnostics *diagnostics, const struct json_value *value);
void pool_nats_check_remote(struct diagnostics *diagnostics, const struct json_value *value);

/* Checks whether the document has what they need; warns where it has not what they are for. */
void pool_nats_check_keys(struct diagnostics *diagnostics, const struct json_value *pools,
                          const struct json_value *pool);
void pool_nats_advise(struct diagnostics *diagnostics, const struct json_value *pools,
                      const struct json_value *pool);

#endif
