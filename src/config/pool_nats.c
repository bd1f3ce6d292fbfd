#include "build_config.h"

#include "config/pool_nats.h"

#include "config/nats_keys.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The id is the last part of a subject of NATS, or several. */
void pool_nats_check_export(struct diagnostics *diagnostics, const struct json_value *value)
{
    const struct json_value *id = document_member_of(value->parent, "id", JSON_STRING);

    if (value->boolean && id != NULL && !nats_name_is_right(id->text))
        diagnostics_value(diagnostics, value, "needs an \"id\" without spaces, controls, * and >");
}

/* What is about processes is said where these run. */
void pool_nats_check_remote(struct diagnostics *diagnostics, const struct json_value *value)
{
    static const char *const without[] = {
        "command",      "args", "url",    "headers", "tls_command", "env",    "clear_env", "cwd",
        "no_new_privs", "core", "stderr", "framing", "rmp",         "export", "overflow"};

    pool_nats_check_export(diagnostics, value);
    for (size_t i = 0; i < COUNT(without) && value->boolean; i++) {
        const struct json_value *other = document_member(value->parent, without[i]);

        if (other != NULL)
            diagnostics_value(diagnostics, other, "a pool with \"remote\" has no such key");
    }
}

static bool is_true(const struct json_value *pool, const char *key)
{
    const struct json_value *value = document_member_of(pool, key, JSON_BOOLEAN);

    return value != NULL && value->boolean;
}

void pool_nats_check_keys(struct diagnostics *diagnostics, const struct json_value *pools,
                          const struct json_value *pool)
{
    static const char *const needing[] = {"remote", "overflow"};

    if (pool->type != JSON_OBJECT || document_member(pools->parent, "nats") != NULL)
        return;
    for (size_t i = 0; i < COUNT(needing); i++) {
        if (is_true(pool, needing[i]))
            diagnostics_value(diagnostics, document_member(pool, needing[i]), "needs \"nats\"");
    }
}

void pool_nats_advise(struct diagnostics *diagnostics, const struct json_value *pools,
                      const struct json_value *pool)
{
    if (is_true(pool, "export") && document_member(pools->parent, "nats") == NULL)
        diagnostics_warn(diagnostics, document_member(pool, "export"),
                         "has no effect: there is no \"nats\"");
}
