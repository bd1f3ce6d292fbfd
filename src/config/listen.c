#include "build_config.h"

#include "config/listen.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "config/keys.h"
#include "config/rmp_keys.h"
#include "config/sources.h"
#include "config/tokens.h"

#define PATH_MAX_BYTES 256 /* of a route */
#define WELL_KNOWN "/.well-known/"
#define KINDS 4

/* --- HTTP --- */

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

/* A name or an address, with a port or without. */
static bool is_authority(struct slice text)
{
    return is_visible(text) && memchr(text.data, '/', text.len) == NULL &&
           memchr(text.data, '@', text.len) == NULL;
}

static bool is_origin(struct slice text)
{
    return slice_is(text, "*") || slice_is(text, "null") ||
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

static const struct json_value *root_of(const struct json_value *value)
{
    while (value->parent != NULL)
        value = value->parent;
    return value;
}

static void check_pool_id(struct diagnostics *diagnostics, const struct json_value *pool)
{
    const struct json_value *pools, *each, *id;
    char shown[64];

    pools = document_member_of(root_of(pool), "pools", JSON_ARRAY);
    each = pools != NULL ? pools->first : NULL;
    for (; each != NULL; each = each->next) {
        id = document_member_of(each, "id", JSON_STRING);
        if (id != NULL && slice_equal(id->text, pool->text))
            return;
    }
    diagnostics_value(diagnostics, pool, "there is no pool \"%s\"",
                      log_escape(shown, sizeof shown, pool->text));
}

static const char *const route_words[] = {
    [HTTP_ROUTE_MCP] = "mcp", [HTTP_ROUTE_RPC] = "rpc", [HTTP_ROUTE_NONE] = NULL};

static const struct key route_list[] = {
    {.name = "pool", .kind = KEY_TEXT, .required = true, .check = check_pool_id},
    {.name = "as", .kind = KEY_WORD, .words = route_words},
};

static const struct key_table route_keys = {KEY_TABLE(route_list)};

static bool is_route(struct slice path)
{
    return is_visible(path) && path.len <= PATH_MAX_BYTES && path.data[0] == '/' &&
           (path.len == 1 || path.data[path.len - 1] != '/') &&
           memchr(path.data, '?', path.len) == NULL && memchr(path.data, '#', path.len) == NULL &&
           !slice_is(path, "/healthz") && !slice_is(path, "/readyz") &&
           !slice_is(path, "/metrics") &&
           strncmp(path.data, WELL_KNOWN, sizeof WELL_KNOWN - 1) != 0;
}

static void check_routes(struct diagnostics *diagnostics, const struct json_value *routes)
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
            keys_check_object(diagnostics, route, &route_keys);
        else if (diagnostics_check_type(diagnostics, route, JSON_STRING,
                                        "the id of a pool or an object") &&
                 diagnostics_check_string(diagnostics, route))
            check_pool_id(diagnostics, route);
    }
}

static void check_servers(struct diagnostics *diagnostics, const struct json_value *servers)
{
    if (servers->first == NULL)
        diagnostics_value(diagnostics, servers, "must contain at least one URL");
}

#define URL_SCHEMA "\"pattern\": \"^https?://\""

static const struct key oauth_list[] = {
    KEY_ROW("resource", "The URL of the resource.", .kind = KEY_TEXT, .required = true,
            .is_right = is_url, .wanted = "must be a URL, as in \"https://mcp.example/mcp\"",
            .schema = URL_SCHEMA, KEY_AT(struct http_oauth_config, resource)),
    KEY_ROW("authorization_servers", "The URLs of the servers.", .kind = KEY_TEXTS,
            .required = true, .min = 1, .check = check_servers, .is_right = is_url,
            .wanted = "must be a URL, as in \"https://auth.example\"", .schema = URL_SCHEMA,
            KEY_AT(struct http_oauth_config, servers)),
    KEY_ROW("scopes", "The scopes that there are.", .kind = KEY_TEXTS, .is_right = is_scope,
            .wanted = "must be a scope: visible characters without quotes",
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct http_oauth_config, scopes)),
};

static const struct key_table oauth_keys = {KEY_TABLE(oauth_list)};

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

static void check_address(struct diagnostics *diagnostics, const struct json_value *value)
{
    struct listen_address address;
    char problem[LISTEN_PROBLEM_MAX];
    enum listen_kind first, kind = LISTEN_UNIX;

    while (strcmp(listen_kind_name(kind), value->key.data) != 0)
        kind++;
    if (address_of(value->parent, &first) != value)
        diagnostics_value(diagnostics, value, "\"%s\" is set already", listen_kind_name(first));
    else if (diagnostics_check_string(diagnostics, value) &&
             !listen_address_read(&address, kind, value->text.data, problem))
        diagnostics_value(diagnostics, value, "%s", problem);
}

/* --- the other keys --- */

static void check_token_file(struct diagnostics *diagnostics, const struct json_value *file)
{
    struct tokens tokens = {.count = 0};
    char shown[512], reason[TOKEN_REASON_MAX];

    if (!sources_replace_files(diagnostics->sources) &&
        tokens_read(&tokens, file->text.data, reason) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, file, "cannot use \"%s\": %s",
                          log_escape(shown, sizeof shown, file->text), reason);
    tokens_free(&tokens);
}

static void check_open(struct diagnostics *diagnostics, const struct json_value *open)
{
    if (open->boolean && document_member(open->parent, "token_file") != NULL)
        diagnostics_value(diagnostics, open, "excludes token_file");
}

/* A path may lead to a pool beside that of all clients: which one is meant is not guessed. */
static void check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    check_pool_id(diagnostics, pool);
    if (document_member(pool->parent, "routes") != NULL)
        diagnostics_value(diagnostics, pool, "excludes routes, which name the pools");
}

/* --- the table --- */

/* What a key is for: it is an error elsewhere, as a rule about who may connect is not ignored. */
enum { FOR_ALL, FOR_SOCKETS, FOR_USERS, FOR_NETWORK, FOR_HTTP, FOR_FRAMES };

#define ADDRESS_SCHEMA "\"type\": \"string\", "
#define HTTP_SCHEMA ADDRESS_SCHEMA "\"pattern\": \"^unix:.|^fd:.|:[0-9]+$\""
#define ROUTES_SCHEMA                                                                              \
    "\"type\": \"object\", \"minProperties\": 1, \"additionalProperties\": {\"anyOf\": ["          \
    "{\"type\": \"string\"}, {\"type\": \"object\", \"properties\": {\"pool\": {\"description\": " \
    "\"The pool of the path.\", \"type\": \"string\"}, \"as\": {\"description\": "                 \
    "\"What is spoken there. Default: mcp.\", \"enum\": [\"mcp\", \"rpc\"]}}, "                    \
    "\"patternProperties\": {\"^[_$]\": true}, \"additionalProperties\": false, "                  \
    "\"required\": [\"pool\"]}]}"

static const struct key listen_list[] = {
    KEY_ROW("unix", "The path of a Unix socket, for framed messages.", .check = check_address,
            .schema = ADDRESS_SCHEMA KEY_FILLED_SCHEMA),
    KEY_ROW("tcp", "HOST:PORT of framed messages.", .check = check_address,
            .schema = ADDRESS_SCHEMA "\"pattern\": \":[0-9]+$\""),
    KEY_ROW("http", "HOST:PORT, or unix:PATH, of HTTP and WebSocket.", .check = check_address,
            .schema = HTTP_SCHEMA),
    KEY_ROW("fd", "The name of a socket that the service manager passes on.",
            .check = check_address,
            .schema = ADDRESS_SCHEMA KEY_FILLED_SCHEMA ", \"maxLength\": 255"),
    KEY_ROW("framing", "Where messages of the clients begin and end. Default: ndjson.",
            .kind = KEY_FRAMING, .use = FOR_FRAMES, KEY_POINTER_AT(struct listen_config, framing)),
    KEY_ROW("mode", "The mode of the Unix socket, in octal. Default: 0600.", .use = FOR_SOCKETS,
            .check = access_check_mode,
            .schema = "\"type\": \"string\", \"pattern\": \"^0*[67][0-7][0-7]$\""),
    KEY_ROW("group", "The group of the Unix socket.", .use = FOR_SOCKETS,
            .check = access_check_group, .schema = ACCESS_ID_SCHEMA),
    KEY_ROW("allow_uids", "The users that may connect to the Unix socket, by name or number.",
            .use = FOR_USERS, .check = access_check_uids, .schema = ACCESS_UIDS_SCHEMA),
    KEY_ROW("token_file", "The file of the tokens that clients on TCP and HTTP show.",
            .kind = KEY_TEXT, .use = FOR_NETWORK, .check = check_token_file,
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct listen_config, token_file)),
    KEY_ROW("open", "Clients of other machines need no token. Default: false.", .kind = KEY_BOOLEAN,
            .use = FOR_NETWORK, .check = check_open, KEY_AT(struct listen_config, open)),
    KEY_ROW("pool", "The pool of all clients of the listener. Default: each names its own.",
            .kind = KEY_TEXT, .check = check_pool, .schema = KEY_FILLED_SCHEMA,
            KEY_AT(struct listen_config, pool)),
    KEY_ROW("origins", "HTTP: the origins whose pages may call; * is any.", .kind = KEY_TEXTS,
            .use = FOR_HTTP, .is_right = is_origin,
            .wanted =
                "must be an origin, as in \"https://app.example\" or \"http://localhost:*\", or "
                "\"*\" for any",
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct listen_config, http.origins)),
    KEY_ROW("hosts", "HTTP: further names of the listener in Host; * is any.", .kind = KEY_TEXTS,
            .use = FOR_HTTP, .is_right = is_host,
            .wanted =
                "must be a host, as in \"mcp.example\" or \"mcp.example:8080\", or \"*\" for any",
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct listen_config, http.hosts)),
    KEY_ROW("routes", "HTTP: the paths, and the pool at each, in place of the usual ones.",
            .use = FOR_HTTP, .check = check_routes, .schema = ROUTES_SCHEMA),
    KEY_ROW("oauth", "HTTP: the metadata of the protected resource (RFC 9728).", .kind = KEY_OBJECT,
            .use = FOR_HTTP, .members = &oauth_keys, KEY_AT(struct listen_config, http.oauth)),
    KEY_ROW("health", "HTTP: /healthz and /readyz are there. Default: false.", .kind = KEY_BOOLEAN,
            .use = FOR_HTTP, KEY_AT(struct listen_config, http.health)),
    KEY_ROW("metrics", "HTTP: /metrics is there. Default: false.", .kind = KEY_BOOLEAN,
            .use = FOR_HTTP, KEY_AT(struct listen_config, http.metrics)),
    KEY_ROW("page", "HTTP: a page for browsers is at /. Default: true.", .kind = KEY_BOOLEAN,
            .use = FOR_HTTP, .is_negated = true, KEY_AT(struct listen_config, http.no_page)),
};

const struct key_table listen_keys = {
    KEY_TABLE(listen_list), .help = "A listener, or the keys of those of the command line."};

static bool begins(const struct json_value *address, const char *with)
{
    return address->type == JSON_STRING && strncmp(address->text.data, with, strlen(with)) == 0;
}

static void check_fitting(struct diagnostics *diagnostics, const struct json_value *object,
                          const struct json_value *address, enum listen_kind kind)
{
    bool is_unix = kind == LISTEN_UNIX || (kind == LISTEN_HTTP && begins(address, "unix:"));
    bool is_fd = kind == LISTEN_FD || (kind == LISTEN_HTTP && begins(address, "fd:"));

    for (const struct json_value *member = object->first; member != NULL; member = member->next) {
        const struct key *key = key_find(&listen_keys, member->key);
        int use = key != NULL ? key->use : FOR_ALL;

        if (!is_unix && (use == FOR_SOCKETS || (use == FOR_USERS && !is_fd)))
            diagnostics_value(diagnostics, member, "is for Unix sockets");
        else if (kind == LISTEN_UNIX && use == FOR_NETWORK)
            diagnostics_value(diagnostics, member, "is for \"tcp\" and \"http\"");
        else if (kind != LISTEN_HTTP && use == FOR_HTTP)
            diagnostics_value(diagnostics, member, "is for \"http\"");
        else if (kind == LISTEN_HTTP && use == FOR_FRAMES)
            diagnostics_value(diagnostics, member, "is for \"unix\" and \"tcp\"");
    }
}

static void check_object(struct diagnostics *diagnostics, const struct json_value *object,
                         bool needs_address)
{
    const struct json_value *address;
    enum listen_kind kind;

    keys_check_object(diagnostics, object, &listen_keys);
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

/* --- one address, two keys --- */

#define PLACES_MAX (LISTENS_MAX + 2)

/* The values that name an address: of the listeners, of metrics and of the control socket. */
static size_t find_places(const struct json_value *places[PLACES_MAX],
                          const struct json_value *root)
{
    const struct json_value *listen = document_member(root, "listen"), *each = NULL;
    const struct json_value *more[] = {document_member(root, "metrics"),
                                       document_member(root, "control")};
    enum listen_kind kind;
    size_t count = 0;

    if (listen != NULL)
        each = listen->type == JSON_ARRAY ? listen->first : listen;
    for (; each != NULL; each = each == listen ? NULL : each->next) {
        places[count] = address_of(each, &kind);
        count += places[count] != NULL;
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (more[i] != NULL)
            places[count++] = more[i];
    }
    return count;
}

static bool read_place(struct listen_address *to, const struct json_value *value)
{
    char problem[LISTEN_PROBLEM_MAX], path[RMP_SOCKET_MAX], why[RMP_SOCKET_REASON_MAX];
    enum listen_kind kind = LISTEN_HTTP;

    if (strcmp(value->key.data, "control") == 0)
        return rmp_socket_expand(path, value->text.data, "", why) == STDIO_BUS_OK &&
               listen_address_of_path(to, path, problem);
    if (strcmp(value->key.data, "metrics") != 0)
        (void)address_of(value->parent, &kind);
    return listen_address_read(to, kind, value->text.data, problem) && to->fd_name[0] == '\0' &&
           (to->is_unix || to->port != 0);
}

static bool is_same_place(const struct json_value *one, const struct json_value *other)
{
    struct listen_address at, there;

    if (!read_place(&at, one) || !read_place(&there, other))
        return false;
    there.kind = at.kind;
    return listen_address_same(&at, &there);
}

void listen_check_addresses(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *places[PLACES_MAX];
    size_t count = find_places(places, root), earlier;
    char shown[256], path[DOCUMENT_PATH_MAX], at[DIAGNOSTICS_PLACE_MAX];

    for (size_t i = 1; i < count; i++) {
        for (earlier = 0; earlier < i && !is_same_place(places[earlier], places[i]);)
            earlier++;
        if (earlier == i)
            continue;
        document_path(path, sizeof path, places[earlier]);
        diagnostics_value(diagnostics, places[i], "\"%s\" is the address of %s already, at %s",
                          log_escape(shown, sizeof shown, places[i]->text), path,
                          diagnostics_place(at, diagnostics, places[earlier], places[i]));
    }
}

/* --- reading --- */

static bool read_route(struct http_route_config *route, const struct json_value *value)
{
    const struct json_value *pool = value, *as = NULL;

    if (value->type == JSON_OBJECT) {
        pool = document_member(value, "pool");
        as = document_member(value, "as");
    }
    route->kind = as != NULL ? (enum http_route_kind)key_word(as, route_words) : HTTP_ROUTE_MCP;
    route->path = slice_copy(value->key);
    route->pool = slice_copy(pool->text);
    return route->path != NULL && route->pool != NULL;
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

int listen_read(struct listen_config *config, const struct json_value *object)
{
    const struct json_value *address;
    char problem[LISTEN_PROBLEM_MAX];
    enum listen_kind kind;

    *config = (struct listen_config){.pool = NULL};
    if (access_read(&config->access, object) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (object == NULL)
        return STDIO_BUS_OK;
    address = address_of(object, &kind);
    if (address != NULL)
        listen_address_read(&config->address, kind, address->text.data, problem);
    keys_apply(config, &listen_keys, object);
    return keys_copy(config, &listen_keys, object) &&
                   read_routes(&config->http, document_member(object, "routes"))
               ? STDIO_BUS_OK
               : STDIO_BUS_ERR;
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
    for (size_t i = 0; i < config->http.route_count; i++) {
        free(config->http.routes[i].path);
        free(config->http.routes[i].pool);
    }
    free(config->http.routes);
    keys_free(config, &listen_keys);
    *config = (struct listen_config){.pool = NULL};
}
