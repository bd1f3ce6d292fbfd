/* The registry of schemas: ids and types of bodies, and additions from the configuration. */
#ifndef STDIO_BUS_RMP_SCHEMAS_H
#define STDIO_BUS_RMP_SCHEMAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The ids that the daemon itself uses. */
enum rmp_schema_id {
    RMP_SCHEMA_TOOL_RESULT = 4,
    RMP_SCHEMA_RUN_EVENT = 8,
    RMP_SCHEMA_CONTROL = 9,
    RMP_SCHEMA_ERROR_REPORT = 10,
    RMP_SCHEMA_CTRL_REQ = 2001,
    RMP_SCHEMA_CTRL_RESP = 2002,
    RMP_SCHEMA_METRICS_SNAPSHOT = 3001,
    RMP_SCHEMA_ACTION_DECISION = 3006,
    RMP_SCHEMA_BUS_DROP_NOTICE = 3007,
    RMP_SCHEMA_AGENT_REQUEST = 4000,
    RMP_SCHEMA_AGENT_RESPONSE = 4001
};

struct rmp_schema {
    uint16_t id;
    const char *type; /* "error.report.v1": its first part is the family */
};

/* A zeroed one has the public registry and no additions. */
struct rmp_schemas {
    struct rmp_schema *added; /* by id; owns the types */
    size_t added_count, added_room;
};

void rmp_schemas_free(struct rmp_schemas *schemas);

/* Adds a schema. STDIO_BUS_EINVAL: the id is 0 or taken, or the type is not valid (below);
 * STDIO_BUS_ERR: out of memory. The type is copied. */
int rmp_schemas_add(struct rmp_schemas *schemas, uint16_t id, struct slice type);

/* The schema of this id, or NULL. It lives until the next addition. */
const struct rmp_schema *rmp_schemas_find(const struct rmp_schemas *schemas, uint16_t id);

/* The schema whose type is exactly this, or NULL. */
const struct rmp_schema *rmp_schemas_of_type(const struct rmp_schemas *schemas, struct slice type);

/* Whether the text is <family>.<kind>.v<number>: three or more parts, each of letters, digits, _
 * and -; the first a family of the registry, the last v and a number over 0. */
bool rmp_type_is_valid(struct slice type);

/* Whether the type of a body is valid and of the schema's family (RMP 2). */
bool rmp_schema_takes(const struct rmp_schema *schema, struct slice type);

#endif
