/* The rules of the configuration (spec 9.3, stdio_bus.conf(5)). */
#ifndef STDIO_BUS_CONFIG_VALIDATION_H
#define STDIO_BUS_CONFIG_VALIDATION_H

#include "base/limits.h"
#include "config/diagnostics.h"

/* Reports every rule that the document breaks, and warns about unknown keys. */
void validation_check(struct diagnostics *diagnostics, const struct json_value *root);

/* Sets the limits that `object`, which is valid, has; the others stay. */
void validation_apply_limits(struct limits *limits, const struct json_value *object);

#endif
