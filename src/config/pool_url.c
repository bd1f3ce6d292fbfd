#include "build_config.h"

#include "config/pool_url.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/environment.h"
#include "config/headers.h"
#include "config/keys.h"
#include "config/parts.h"
#include "config/url.h"

/* The image of the daemon, also when its file was replaced. */
#define OWN_PROGRAM "/proc/self/exe"

void pool_url_check(struct diagnostics *diagnostics, const struct json_value *url)
{
    const struct json_value *protocol = document_member(url->parent, "protocol");
    char missing[PART_MISSING_MAX];
    struct remote_url read;
    const char *problem = part_missing(missing, PART_REMOTE);

    if (problem == NULL)
        problem = url_read(&read, url->text.data);
    if (problem != NULL)
        diagnostics_value(diagnostics, url, "%s", problem);
    if (protocol == NULL || protocol->type != JSON_STRING ||
        !slice_equal(protocol->text, slice_of_text("mcp")))
        diagnostics_value(diagnostics, url, "needs \"protocol\": \"mcp\"");
}

void pool_url_check_headers(struct diagnostics *diagnostics, const struct json_value *headers)
{
    struct remote_headers read = {.count = 0};

    environment_check(diagnostics, headers);
    if (headers->type != JSON_OBJECT)
        return;
    for (const struct json_value *each = headers->first; each != NULL; each = each->next) {
        const char *problem =
            each->type == JSON_STRING ? headers_add_pair(&read, each->key, each->text.data) : NULL;

        if (problem != NULL)
            diagnostics_value(diagnostics, each, "%s", problem);
    }
}

void pool_url_check_keys(struct diagnostics *diagnostics, const struct json_value *pool)
{
    static const char *const without[] = {"command", "args"};
    static const char *const with[] = {"headers", "tls_command"};
    const struct json_value *url = document_member(pool, "url"), *other;
    const struct json_value *remote = document_member_of(pool, "remote", JSON_BOOLEAN);

    if (url == NULL && document_member(pool, "command") == NULL &&
        (remote == NULL || !remote->boolean))
        diagnostics_missing(diagnostics, pool, "command");
    for (size_t i = 0; i < 2; i++) {
        other = document_member(pool, url != NULL ? without[i] : with[i]);
        if (other != NULL)
            diagnostics_value(diagnostics, other,
                              url != NULL ? "a pool with \"url\" has no such key"
                                          : "only a pool with \"url\" has this key");
    }
}

/* --- the workers --- */

struct arguments {
    char **to;
    size_t size, count;
    bool failed;
};

static void add(struct arguments *arguments, const char *text)
{
    if (arguments->count < arguments->size && !arguments->failed) {
        arguments->to[arguments->count] = slice_copy(slice_of_text(text));
        arguments->failed = arguments->to[arguments->count] == NULL;
    }
    arguments->count++;
}

static void add_member(struct arguments *arguments, const struct json_value *pool, const char *key,
                       const char *option)
{
    const struct json_value *member = document_member(pool, key);

    if (member == NULL)
        return;
    add(arguments, option);
    add(arguments, member->text.data);
}

size_t pool_url_arguments(const struct json_value *pool, char **argv, size_t size)
{
    const struct json_value *headers = document_member(pool, "headers"), *each;
    struct arguments arguments = {.to = argv, .size = size};
    char variable[ENVIRONMENT_FIELD_MAX], text[HEADERS_BYTES_MAX + ENVIRONMENT_FIELD_MAX];

    add_member(&arguments, pool, "url", "--connect");
    for (each = headers != NULL ? headers->first : NULL; each != NULL; each = each->next) {
        snprintf(variable, sizeof variable, ENVIRONMENT_FIELD, each->index + 1);
        snprintf(text, sizeof text, "%s=%s", each->key.data, variable);
        add(&arguments, "--header-env");
        add(&arguments, text);
    }
    add_member(&arguments, pool, "tls_command", "--tls-command");
    add_member(&arguments, pool, "framing", "--framing");
    return arguments.count;
}

const char *pool_url_program(void)
{
    return access(OWN_PROGRAM, X_OK) == 0 ? OWN_PROGRAM : "stdio_bus";
}
