/* The rules of the configuration (spec 9.3, stdio_bus.conf(5)). */
#ifndef STDIO_BUS_CONFIG_RULES_H
#define STDIO_BUS_CONFIG_RULES_H

#include "config/report.h"

#define CONFIG_POOL_ID_MAX 256      /* bytes */
#define CONFIG_INSTANCES_MAX 1024   /* workers of one pool */
#define CONFIG_WORKERS_MAX 4096     /* workers of all pools */

/* Reports every rule that the document breaks, and warns about unknown keys. */
void rules_check(struct config_report *report, const struct json_value *root);

/* Puts the limits that `object` sets in place; the others stay. The rules were kept. */
void rules_apply_limits(struct limits *limits, const struct json_value *object);

#endif
