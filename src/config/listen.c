#include "build_config.h"

#include "config/listen.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "config/http_keys.h"
#include "config/rules.h"
#include "config/sources.h"
#include "config/tokens.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KINDS 4

/* --- the address --- */

/* The member that is the address of a listener, or NULL. */
static const struct json_value *address_of(const struct json_value *object, enum listen_kind *kind)
{
    for (int i = 0; i < KINDS; i++) {
        const struct json_value *member = document_member(object,
                                                          listen_kind_name((enum listen_kind)i));

        *kind = (enum listen_kind)i;
        if (member != NULL)
            return member;
    }
    return NULL;
}

bool listen_has_address(const struct json_value *object)
{
    enum listen_kind kind;

    return address_of(object, &kind) != NULL;
}

static void check_address(struct diagnostics *diagnostics, const struct json_value *value,
                          enum listen_kind kind)
{
    struct listen_address address;
    char problem[LISTEN_PROBLEM_MAX];
    enum listen_kind first;

    if (address_of(value->parent, &first) != value)
        diagnostics_value(diagnostics, value, "\"%s\" is set already", listen_kind_name(first));
    else if (diagnostics_check_string(diagnostics, value) &&
             !listen_address_read(&address, kind, value->text.data, problem))
        diagnostics_value(diagnostics, value, "%s", problem);
}

static void check_unix(struct diagnostics *diagnostics, const struct json_value *value)
{
    check_address(diagnostics, value, LISTEN_UNIX);
}

static void check_tcp(struct diagnostics *diagnostics, const struct json_value *value)
{
    check_address(diagnostics, value, LISTEN_TCP);
}

static void check_http(struct diagnostics *diagnostics, const struct json_value *value)
{
    check_address(diagnostics, value, LISTEN_HTTP);
}

static void check_fd(struct diagnostics *diagnostics, const struct json_value *value)
{
    check_address(diagnostics, value, LISTEN_FD);
}

/* --- the other keys --- */

static void check_framing(struct diagnostics *diagnostics, const struct json_value *framing)
{
    if (diagnostics_check_string(diagnostics, framing) && framing_named(framing->text.data) == NULL)
        diagnostics_value(diagnostics, framing, "must be " FRAMING_NAMES);
}

static void check_token_file(struct diagnostics *diagnostics, const struct json_value *file)
{
    struct tokens tokens = {.count = 0};
    char shown[512], reason[TOKEN_REASON_MAX];

    if (diagnostics_check_string(diagnostics, file) &&
        !sources_replace_files(diagnostics->sources) &&
        tokens_read(&tokens, file->text.data, reason) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, file, "cannot use \"%s\": %s",
                          log_escape(shown, sizeof shown, file->text), reason);
    tokens_free(&tokens);
}

static void check_open(struct diagnostics *diagnostics, const struct json_value *open)
{
    if (diagnostics_check_type(diagnostics, open, JSON_BOOLEAN, "true or false") && open->boolean &&
        document_member(open->parent, "token_file") != NULL)
        diagnostics_value(diagnostics, open, "excludes token_file");
}

/* A path may lead to a pool beside that of all clients: which one is meant is not guessed. */
static void check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    http_keys_check_pool(diagnostics, pool);
    if (document_member(pool->parent, "routes") != NULL)
        diagnostics_value(diagnostics, pool, "excludes routes, which name the pools");
}

static const struct rule listen_rules[] = {
    {.key = "unix", .check = check_unix},
    {.key = "tcp", .check = check_tcp},
    {.key = "http", .check = check_http},
    {.key = "fd", .check = check_fd},
    {.key = "framing", .check = check_framing},
    {.key = "mode", .check = access_check_mode},
    {.key = "group", .check = access_check_group},
    {.key = "allow_uids", .check = access_check_uids},
    {.key = "token_file", .check = check_token_file},
    {.key = "open", .check = check_open},
    {.key = "pool", .check = check_pool},
    {.key = "origins", .check = http_keys_check_origins},
    {.key = "hosts", .check = http_keys_check_hosts},
    {.key = "routes", .check = http_keys_check_routes},
    {.key = "oauth", .check = http_keys_check_oauth},
    {.key = "health", .check = rules_check_boolean},
    {.key = "metrics", .check = rules_check_boolean},
};

/* --- keys that mean nothing for a listener: a rule about who may connect is not ignored --- */

static bool is_for(const char *const *keys, struct slice key)
{
    for (; *keys != NULL; keys++) {
        if (slice_equal(key, slice_of(*keys, strlen(*keys))))
            return true;
    }
    return false;
}

static void check_fitting(struct diagnostics *diagnostics, const struct json_value *object,
                          const struct json_value *address, enum listen_kind kind)
{
    static const char *const of_socket[] = {"mode", "group", "allow_uids", NULL};
    static const char *const of_users[] = {"allow_uids", NULL};
    static const char *const of_network[] = {"token_file", "open", NULL};
    static const char *const of_http[] = {"origins", "hosts",   "routes", "oauth",
                                          "health",  "metrics", NULL};
    static const char *const of_frames[] = {"framing", NULL};
    bool is_unix = kind == LISTEN_UNIX || (kind == LISTEN_HTTP && address->type == JSON_STRING &&
                                           strncmp(address->text.data, "unix:", 5) == 0);
    bool is_fd = kind == LISTEN_FD || (kind == LISTEN_HTTP && address->type == JSON_STRING &&
                                       strncmp(address->text.data, "fd:", 3) == 0);

    for (const struct json_value *member = object->first; member != NULL; member = member->next) {
        if (!is_unix && !(is_fd && is_for(of_users, member->key)) && is_for(of_socket, member->key))
            diagnostics_value(diagnostics, member, "is for Unix sockets");
        else if (kind == LISTEN_UNIX && is_for(of_network, member->key))
            diagnostics_value(diagnostics, member, "is for \"tcp\" and \"http\"");
        else if (kind != LISTEN_HTTP && is_for(of_http, member->key))
            diagnostics_value(diagnostics, member, "is for \"http\"");
        else if (kind == LISTEN_HTTP && is_for(of_frames, member->key))
            diagnostics_value(diagnostics, member, "is for \"unix\" and \"tcp\"");
    }
}

static void check_object(struct diagnostics *diagnostics, const struct json_value *object,
                         bool needs_address)
{
    const struct json_value *address;
    enum listen_kind kind;

    rules_check_object(diagnostics, object, listen_rules, COUNT(listen_rules));
    if (object->type != JSON_OBJECT)
        return;
    address = address_of(object, &kind);
    if (address != NULL)
        check_fitting(diagnostics, object, address, kind);
    else if (needs_address)
        diagnostics_value(diagnostics, object,
                          "a listener needs \"unix\", \"tcp\", \"http\" or \"fd\"");
}

void listen_check(struct diagnostics *diagnostics, const struct json_value *listen)
{
    if (listen->type != JSON_ARRAY) {
        check_object(diagnostics, listen, false);
        return;
    }
    if (listen->count > LISTENS_MAX)
        diagnostics_value(diagnostics, listen, "must contain at most %d listeners", LISTENS_MAX);
    for (const struct json_value *each = listen->first; each != NULL; each = each->next)
        check_object(diagnostics, each, true);
}

void listen_check_metrics(struct diagnostics *diagnostics, const struct json_value *address)
{
    struct listen_address checked;
    char problem[LISTEN_PROBLEM_MAX];

    if (diagnostics_check_string(diagnostics, address) &&
        !listen_address_read(&checked, LISTEN_HTTP, address->text.data, problem))
        diagnostics_value(diagnostics, address, "%s", problem);
}

/* --- reading --- */

static bool copy_member(char **to, const struct json_value *object, const char *key)
{
    const struct json_value *string = document_member(object, key);

    if (string == NULL)
        return true;
    *to = malloc(string->text.len + 1);
    if (*to != NULL)
        memcpy(*to, string->text.data, string->text.len + 1);
    return *to != NULL;
}

int listen_read(struct listen_config *config, const struct json_value *object)
{
    const struct json_value *address, *framing, *open;
    char problem[LISTEN_PROBLEM_MAX];
    enum listen_kind kind;

    *config = (struct listen_config){.pool = NULL};
    if (access_read(&config->access, object) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (object == NULL)
        return STDIO_BUS_OK;
    address = address_of(object, &kind);
    framing = document_member(object, "framing");
    open = document_member(object, "open");
    if (address != NULL)
        listen_address_read(&config->address, kind, address->text.data, problem);
    config->framing = framing != NULL ? framing_named(framing->text.data) : NULL;
    config->open = open != NULL && open->boolean;
    if (!copy_member(&config->pool, object, "pool") ||
        !copy_member(&config->token_file, object, "token_file"))
        return STDIO_BUS_ERR;
    return http_keys_read(&config->http, object);
}

void listen_of_metrics(struct listen_config *config, const struct json_value *address)
{
    char problem[LISTEN_PROBLEM_MAX];

    *config = (struct listen_config){.http = {.health = true, .metrics = true, .is_bare = true}};
    listen_address_read(&config->address, LISTEN_HTTP, address->text.data, problem);
}

bool listen_any_metrics(const struct listen_config *listens, size_t count)
{
    size_t i = 0;

    while (i < count && !listens[i].http.metrics)
        i++;
    return i < count;
}

void listen_free(struct listen_config *config)
{
    access_free(&config->access);
    http_keys_free(&config->http);
    free(config->pool);
    free(config->token_file);
    *config = (struct listen_config){.pool = NULL};
}
