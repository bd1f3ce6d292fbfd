#include "build_config.h"

#include "config/rmp_pool.h"

#include <stdlib.h>

#include "base/error.h"

bool rmp_pool_present(const struct json_value *pool)
{
    return document_member(pool, "rmp") != NULL;
}

/* The member of the key "rmp" of a pool, if both are of the right types; otherwise NULL. */
static const struct json_value *member_of(const struct json_value *pool, const char *key,
                                          enum json_type type)
{
    const struct json_value *rmp, *member;

    rmp = pool->type == JSON_OBJECT ? document_member(pool, "rmp") : NULL;
    member = rmp != NULL && rmp->type == JSON_OBJECT ? document_member(rmp, key) : NULL;
    return member != NULL && member->type == type ? member : NULL;
}

static bool is_same(const struct json_value *a, const struct json_value *b)
{
    return a->type == JSON_BOOLEAN ? a->boolean && b->boolean : slice_equal(a->text, b->text);
}

/* What one pool alone may say. */
static void check_unique(struct diagnostics *diagnostics, const struct json_value *pools,
                         const struct json_value *pool, const struct json_value *member)
{
    const struct json_value *other, *earlier;
    char path[DOCUMENT_PATH_MAX], place[DIAGNOSTICS_PLACE_MAX];

    for (other = pools->first; member != NULL && other != pool; other = other->next) {
        earlier = member_of(other, member->key.data, member->type);
        if (earlier == NULL || !is_same(earlier, member))
            continue;
        document_path(path, sizeof path, other);
        diagnostics_value(diagnostics, member, "%s is that already, at %s", path,
                          diagnostics_place(place, diagnostics, earlier, member));
        return;
    }
}

void rmp_pool_check_unique(struct diagnostics *diagnostics, const struct json_value *pools,
                           const struct json_value *pool)
{
    check_unique(diagnostics, pools, pool, member_of(pool, "agent", JSON_STRING));
    check_unique(diagnostics, pools, pool, member_of(pool, "runner", JSON_BOOLEAN));
}

/* The name is a part of a topic. */
static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    }
    return text.len > 0 && text.len <= RMP_AGENT_MAX;
}

static void check_agent(struct diagnostics *diagnostics, const struct json_value *agent)
{
    if (!diagnostics_check_string(diagnostics, agent))
        return;
    if (!is_name(agent->text))
        diagnostics_value(diagnostics, agent, "must be 1 to %d bytes, no control characters",
                          RMP_AGENT_MAX);
}

/* The daemon is the client of such a pool, and its requests are of no other protocol. */
static void check_mode(struct diagnostics *diagnostics, const struct json_value *value)
{
    static const char *const keys[] = {"protocol", "clients"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct json_value *other = document_member(value->parent, keys[i]);

        if (other != NULL)
            diagnostics_value(diagnostics, other, "a pool with \"rmp\" has no such key");
    }
}

void rmp_pool_check(struct diagnostics *diagnostics, const struct json_value *value)
{
    const struct json_value *member, *agent, *runner;

    if (!diagnostics_check_type(diagnostics, value, JSON_OBJECT, "an object"))
        return;
    check_mode(diagnostics, value);
    agent = document_member(value, "agent");
    runner = document_member(value, "runner");
    if (agent != NULL)
        check_agent(diagnostics, agent);
    if (runner != NULL)
        diagnostics_check_type(diagnostics, runner, JSON_BOOLEAN, "true or false");
    if (agent == NULL && runner == NULL)
        diagnostics_value(diagnostics, value, "must have \"agent\" or \"runner\"");
    for (member = value->first; member != NULL; member = member->next) {
        if (member != agent && member != runner && !diagnostics_is_comment(member))
            diagnostics_warn(diagnostics, member, "unknown key");
    }
}

int rmp_pool_read(struct rmp_pool *rmp, const struct json_value *pool)
{
    const struct json_value *agent = member_of(pool, "agent", JSON_STRING);
    const struct json_value *runner = member_of(pool, "runner", JSON_BOOLEAN);

    rmp->runner = runner != NULL && runner->boolean;
    if (agent == NULL)
        return STDIO_BUS_OK;
    rmp->agent = malloc(agent->text.len + 1);
    if (rmp->agent == NULL)
        return STDIO_BUS_ERR;
    memcpy(rmp->agent, agent->text.data, agent->text.len + 1);
    return STDIO_BUS_OK;
}

void rmp_pool_free(struct rmp_pool *rmp)
{
    free(rmp->agent);
    *rmp = (struct rmp_pool){.agent = NULL};
}
