/* Keys that nobody asked for. */
#ifndef STDIO_BUS_CONFIG_KEYS_H
#define STDIO_BUS_CONFIG_KEYS_H

#include "config/report.h"

/* Warns about each key of `object` that is not among the `count` known ones, naming the nearest of
 * these when it is near enough to be a slip. */
void config_warn_unknown_keys(struct config_report *report, const struct json_value *object,
                              const char *const *known, size_t count);

#endif
