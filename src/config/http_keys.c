#include "build_config.h"

#include "config/http_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "config/pool_mode.h"
#include "config/rules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PATH_MAX_BYTES 256 /* of a route */
#define WELL_KNOWN "/.well-known/"

/* --- text --- */

/* Visible ASCII. */
static bool is_visible(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 0x7F)
            return false;
    }
    return text.len > 0;
}

/* Moves past the text before "://"; false: there is none. */
static bool skip_scheme(struct slice *text)
{
    for (size_t i = 1; i + 3 < text->len; i++) {
        if (memcmp(text->data + i, "://", 3) != 0)
            continue;
        *text = slice_of(text->data + i + 3, text->len - i - 3);
        return true;
    }
    return false;
}

static bool is_word(struct slice text, const char *word)
{
    return slice_equal(text, slice_of(word, strlen(word)));
}

/* A name or an address, with a port or without. */
static bool is_authority(struct slice text)
{
    return is_visible(text) && memchr(text.data, '/', text.len) == NULL &&
           memchr(text.data, '@', text.len) == NULL;
}

static bool is_origin(struct slice text)
{
    return is_word(text, "*") || is_word(text, "null") ||
           (is_visible(text) && skip_scheme(&text) && is_authority(text));
}

static bool is_host(struct slice text)
{
    struct slice rest = text;

    return is_authority(text) && !skip_scheme(&rest);
}

static bool is_url(struct slice text)
{
    return is_visible(text) && memchr(text.data, '"', text.len) == NULL &&
           memchr(text.data, '\\', text.len) == NULL && memchr(text.data, '?', text.len) == NULL &&
           memchr(text.data, '#', text.len) == NULL &&
           (strncmp(text.data, "https://", 8) == 0 || strncmp(text.data, "http://", 7) == 0) &&
           skip_scheme(&text) && text.len > 0 && text.data[0] != '/';
}

static bool is_scope(struct slice text)
{
    return is_visible(text) && memchr(text.data, '"', text.len) == NULL &&
           memchr(text.data, '\\', text.len) == NULL;
}

/* --- checks --- */

static void check_list(struct diagnostics *diagnostics, const struct json_value *list,
                       bool (*is_right)(struct slice text), const char *wanted)
{
    if (!diagnostics_check_type(diagnostics, list, JSON_ARRAY, "an array of strings"))
        return;
    for (const struct json_value *item = list->first; item != NULL; item = item->next) {
        if (diagnostics_check_string(diagnostics, item) && !is_right(item->text))
            diagnostics_value(diagnostics, item, "%s", wanted);
    }
}

void http_keys_check_origins(struct diagnostics *diagnostics, const struct json_value *origins)
{
    check_list(diagnostics, origins, is_origin,
               "must be an origin, as in \"https://app.example\" or \"http://localhost:*\", or "
               "\"*\" for any");
}

void http_keys_check_hosts(struct diagnostics *diagnostics, const struct json_value *hosts)
{
    check_list(diagnostics, hosts, is_host,
               "must be a host, as in \"mcp.example\" or \"mcp.example:8080\", or \"*\" for any");
}

static const struct json_value *root_of(const struct json_value *value)
{
    while (value->parent != NULL)
        value = value->parent;
    return value;
}

void http_keys_check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    const struct json_value *pools, *each, *id;
    char shown[64];

    if (!diagnostics_check_string(diagnostics, pool))
        return;
    pools = document_member(root_of(pool), "pools");
    each = pools != NULL && pools->type == JSON_ARRAY ? pools->first : NULL;
    for (; each != NULL; each = each->next) {
        id = each->type == JSON_OBJECT ? document_member(each, "id") : NULL;
        if (id != NULL && id->type == JSON_STRING && slice_equal(id->text, pool->text))
            return;
    }
    diagnostics_value(diagnostics, pool, "there is no pool \"%s\"",
                      log_escape(shown, sizeof shown, pool->text));
}

static const char *const route_words[] = {
    [HTTP_ROUTE_MCP] = "mcp", [HTTP_ROUTE_RPC] = "rpc", [HTTP_ROUTE_NONE] = NULL};

static const struct rule route_rules[] = {
    {.key = "pool", .check = http_keys_check_pool, .required = true},
    {.key = "as", .words = route_words},
};

static bool is_route(struct slice path)
{
    return is_visible(path) && path.len <= PATH_MAX_BYTES && path.data[0] == '/' &&
           (path.len == 1 || path.data[path.len - 1] != '/') &&
           memchr(path.data, '?', path.len) == NULL && memchr(path.data, '#', path.len) == NULL &&
           !is_word(path, "/healthz") && !is_word(path, "/readyz") && !is_word(path, "/metrics") &&
           strncmp(path.data, WELL_KNOWN, sizeof WELL_KNOWN - 1) != 0;
}

void http_keys_check_routes(struct diagnostics *diagnostics, const struct json_value *routes)
{
    const struct json_value *route;

    if (!diagnostics_check_type(diagnostics, routes, JSON_OBJECT, "an object"))
        return;
    if (routes->first == NULL)
        diagnostics_value(diagnostics, routes, "must contain at least one path");
    for (route = routes->first; route != NULL; route = route->next) {
        if (!is_route(route->key))
            diagnostics_value(diagnostics, route,
                              "a path begins with a slash, does not end with one, has at most %d "
                              "visible characters and no ? or #, and is not one of the daemon's "
                              "own",
                              PATH_MAX_BYTES);
        if (route->type == JSON_OBJECT)
            rules_check_object(diagnostics, route, route_rules, COUNT(route_rules));
        else if (diagnostics_check_type(diagnostics, route, JSON_STRING,
                                        "the id of a pool or an object"))
            http_keys_check_pool(diagnostics, route);
    }
}

static void check_url(struct diagnostics *diagnostics, const struct json_value *url)
{
    if (diagnostics_check_string(diagnostics, url) && !is_url(url->text))
        diagnostics_value(diagnostics, url, "must be a URL, as in \"https://mcp.example/mcp\"");
}

static void check_servers(struct diagnostics *diagnostics, const struct json_value *servers)
{
    check_list(diagnostics, servers, is_url, "must be a URL, as in \"https://auth.example\"");
    if (servers->type == JSON_ARRAY && servers->first == NULL)
        diagnostics_value(diagnostics, servers, "must contain at least one URL");
}

static void check_scopes(struct diagnostics *diagnostics, const struct json_value *scopes)
{
    check_list(diagnostics, scopes, is_scope, "must be a scope: visible characters without quotes");
}

void http_keys_check_oauth(struct diagnostics *diagnostics, const struct json_value *oauth)
{
    static const struct rule rules[] = {
        {.key = "resource", .check = check_url, .required = true},
        {.key = "authorization_servers", .check = check_servers, .required = true},
        {.key = "scopes", .check = check_scopes},
    };

    rules_check_object(diagnostics, oauth, rules, COUNT(rules));
}

/* --- reading --- */

static bool copy_text(char **to, const struct json_value *string)
{
    *to = malloc(string->text.len + 1);
    if (*to != NULL)
        memcpy(*to, string->text.data, string->text.len + 1);
    return *to != NULL;
}

/* The strings of the array of `key`, if there is one, up to a NULL. */
static bool copy_list(char ***to, const struct json_value *object, const char *key)
{
    const struct json_value *list = document_member(object, key), *item;
    size_t i = 0;

    if (list == NULL)
        return true;
    *to = calloc(list->count + 1, sizeof **to);
    if (*to == NULL)
        return false;
    for (item = list->first; item != NULL; item = item->next) {
        if (!copy_text(&(*to)[i++], item))
            return false;
    }
    return true;
}

static bool read_route(struct http_route_config *route, const struct json_value *value)
{
    const struct json_value *pool = value, *as = NULL;
    const struct json_value path = {.text = value->key};

    if (value->type == JSON_OBJECT) {
        pool = document_member(value, "pool");
        as = document_member(value, "as");
    }
    route->kind = as != NULL ? (enum http_route_kind)pool_mode_word(as, route_words)
                             : HTTP_ROUTE_MCP;
    return copy_text(&route->path, &path) && copy_text(&route->pool, pool);
}

static bool read_routes(struct http_listen_config *config, const struct json_value *routes)
{
    if (routes == NULL)
        return true;
    config->routes = calloc(routes->count, sizeof *config->routes);
    if (config->routes == NULL)
        return false;
    for (const struct json_value *route = routes->first; route != NULL; route = route->next) {
        if (!read_route(&config->routes[config->route_count++], route))
            return false;
    }
    return true;
}

static bool read_oauth(struct http_oauth_config *config, const struct json_value *oauth)
{
    return oauth == NULL || (copy_text(&config->resource, document_member(oauth, "resource")) &&
                             copy_list(&config->servers, oauth, "authorization_servers") &&
                             copy_list(&config->scopes, oauth, "scopes"));
}

int http_keys_read(struct http_listen_config *config, const struct json_value *listen)
{
    const struct json_value *health = document_member(listen, "health");
    const struct json_value *metrics = document_member(listen, "metrics");

    config->health = health != NULL && health->boolean;
    config->metrics = metrics != NULL && metrics->boolean;
    return copy_list(&config->origins, listen, "origins") &&
                   copy_list(&config->hosts, listen, "hosts") &&
                   read_routes(config, document_member(listen, "routes")) &&
                   read_oauth(&config->oauth, document_member(listen, "oauth"))
               ? STDIO_BUS_OK
               : STDIO_BUS_ERR;
}

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

void http_keys_free(struct http_listen_config *config)
{
    for (size_t i = 0; i < config->route_count; i++) {
        free(config->routes[i].path);
        free(config->routes[i].pool);
    }
    free(config->routes);
    free_list(config->origins);
    free_list(config->hosts);
    free(config->oauth.resource);
    free_list(config->oauth.servers);
    free_list(config->oauth.scopes);
    *config = (struct http_listen_config){.origins = NULL};
}
