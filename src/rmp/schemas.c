#include "build_config.h"

#include "rmp/schemas.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

static const struct rmp_schema public_registry[] = {
    {1, "observation.generic.v1"},
    {2, "intent.generic.v1"},
    {3, "intent.tool_call.v1"},
    {4, "toolresult.generic.v1"},
    {5, "artifact.generic.v1"},
    {6, "critique.generic.v1"},
    {7, "statedelta.generic.v1"},
    {8, "observation.run.event.v1"},
    {9, "intent.control.v1"},
    {10, "error.report.v1"},
    {100, "observation.agent.hello.v1"},
    {101, "observation.runtime.hello.v1"},
    {102, "intent.init.v1"},
    {110, "intent.hostcall.request.v1"},
    {111, "toolresult.hostcall.response.v1"},
    {200, "intent.contacts.resolve.v1"},
    {201, "toolresult.contacts.resolved.v1"},
    {210, "intent.context.gather.v1"},
    {211, "observation.context.bundle.v1"},
    {220, "intent.draft.write.v1"},
    {221, "artifact.draft.email.v1"},
    {230, "intent.review.draft.v1"},
    {231, "critique.review.v1"},
    {240, "intent.send.mail.v1"},
    {241, "toolresult.mail.result.v1"},
    {2001, "intent.ctrl.request.v1"},
    {2002, "toolresult.ctrl.response.v1"},
    {3001, "observation.metrics.snapshot.v1"},
    {3002, "observation.opening.event.v1"},
    {3003, "observation.trace.line.v1"},
    {3004, "observation.agent.log.v1"},
    {3005, "intent.action.request.v1"},
    {3006, "toolresult.action.decision.v1"},
    {3007, "error.bus.drop.notice.v1"},
    {4000, "intent.executor.agent.request.v1"},
    {4001, "toolresult.executor.agent.response.v1"},
};

#define PUBLIC_COUNT (sizeof public_registry / sizeof public_registry[0])

/* --- types --- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The part of the type that starts at *at, which moves after its dot, or to len + 1. An empty part
 * is wrong: it has no characters, or one that is not allowed. */
static struct slice next_part(struct slice type, size_t *at)
{
    size_t start = *at, end = start;

    while (end < type.len &&
           (is_letter_or_digit(type.data[end]) || type.data[end] == '_' || type.data[end] == '-'))
        end++;
    *at = end + 1;
    if (end < type.len && type.data[end] != '.')
        end = start;
    return slice_of(type.data + start, end - start);
}

static bool is_version(struct slice part)
{
    if (part.len < 2 || part.data[0] != 'v' || part.data[1] == '0')
        return false;
    for (size_t i = 1; i < part.len; i++) {
        if (part.data[i] < '0' || part.data[i] > '9')
            return false;
    }
    return true;
}

static bool is_family(struct slice part)
{
    static const char *const families[] = {"observation", "intent",     "artifact", "toolresult",
                                           "critique",    "statedelta", "error"};

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (slice_is(part, families[i]))
            return true;
    }
    return false;
}

/* Whether the type has the form of one. *family is its first part. */
static bool has_form(struct slice type, struct slice *family)
{
    size_t at = 0, parts = 0;
    struct slice part = {NULL, 0};

    while (at <= type.len) {
        part = next_part(type, &at);
        if (part.len == 0)
            return false;
        if (parts++ == 0)
            *family = part;
    }
    return parts >= 3 && is_version(part);
}

bool rmp_type_is_valid(struct slice type)
{
    struct slice family;

    return has_form(type, &family) && is_family(family);
}

bool rmp_schema_takes(const struct rmp_schema *schema, struct slice type)
{
    struct slice family;

    if (slice_is(type, schema->type))
        return true;
    return has_form(type, &family) && strncmp(schema->type, family.data, family.len) == 0 &&
           schema->type[family.len] == '.';
}

/* --- the registry --- */

/* The index of the first of the sorted schemas whose id is not below this one. */
static size_t lower_bound(const struct rmp_schema *schemas, size_t count, uint16_t id)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (schemas[low + half].id < id) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static const struct rmp_schema *find_in(const struct rmp_schema *schemas, size_t count, uint16_t id)
{
    size_t at = lower_bound(schemas, count, id);

    return at < count && schemas[at].id == id ? &schemas[at] : NULL;
}

const struct rmp_schema *rmp_schemas_find(const struct rmp_schemas *schemas, uint16_t id)
{
    const struct rmp_schema *schema = find_in(public_registry, PUBLIC_COUNT, id);

    return schema != NULL ? schema : find_in(schemas->added, schemas->added_count, id);
}

static const struct rmp_schema *find_type(const struct rmp_schema *schemas, size_t count,
                                          struct slice type)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_is(type, schemas[i].type))
            return &schemas[i];
    }
    return NULL;
}

const struct rmp_schema *rmp_schemas_of_type(const struct rmp_schemas *schemas, struct slice type)
{
    const struct rmp_schema *schema = find_type(public_registry, PUBLIC_COUNT, type);

    return schema != NULL ? schema : find_type(schemas->added, schemas->added_count, type);
}

static int insert(struct rmp_schemas *schemas, uint16_t id, const char *type)
{
    size_t at = lower_bound(schemas->added, schemas->added_count, id);
    struct rmp_schema *added = array_grow(schemas->added, &schemas->added_room,
                                          schemas->added_count + 1, sizeof *added);

    if (added == NULL)
        return STDIO_BUS_ERR;
    memmove(added + at + 1, added + at, (schemas->added_count - at) * sizeof *added);
    added[at] = (struct rmp_schema){.id = id, .type = type};
    schemas->added = added;
    schemas->added_count++;
    return STDIO_BUS_OK;
}

int rmp_schemas_add(struct rmp_schemas *schemas, uint16_t id, struct slice type)
{
    char *copy;

    if (id == 0 || rmp_schemas_find(schemas, id) != NULL || !rmp_type_is_valid(type))
        return STDIO_BUS_EINVAL;
    copy = malloc(type.len + 1);
    if (copy == NULL)
        return STDIO_BUS_ERR;
    memcpy(copy, type.data, type.len);
    copy[type.len] = '\0';
    if (insert(schemas, id, copy) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    free(copy);
    return STDIO_BUS_ERR;
}

void rmp_schemas_free(struct rmp_schemas *schemas)
{
    for (size_t i = 0; i < schemas->added_count; i++)
        free((char *)schemas->added[i].type);
    free(schemas->added);
    *schemas = (struct rmp_schemas){.added = NULL};
}
