#include "build_config.h"

#include "http/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "http/head.h"
#include "json/string.h"

#define STRING_ROOM(len) (6 * (len) + 2) /* of json_output_string */
#define ORIGIN_MAX 512                   /* bytes of an origin that is repeated in an answer */
#define ASKED_HEADERS_MAX 1024           /* bytes of the names of a preflight */
#define WELL_KNOWN "/.well-known/oauth-protected-resource"

static int lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte;
}

/* Names of hosts, schemes and origins have no case. */
static bool is_same(struct slice a, struct slice b)
{
    size_t i;

    for (i = 0; i < a.len && i < b.len && lower(a.data[i]) == lower(b.data[i]); i++)
        ;
    return a.len == b.len && i == a.len;
}

/* --- Host --- */

/* Not "127.1" and the like, which browsers write out. */
static bool is_address(struct slice host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (host.len > 0 && host.data[0] == '[')
        return true;
    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, &address) == 1;
}

/* Whether an entry of the configuration, with a port or without, allows the host. */
static bool is_allowed(const char *entry, struct slice host, struct slice port)
{
    struct slice allowed, allowed_port;

    if (strcmp(entry, "*") == 0)
        return true;
    return http_authority_read(slice_of_text(entry), &allowed, &allowed_port) &&
           is_same(allowed, host) && (allowed_port.data == NULL || slice_equal(allowed_port, port));
}

bool http_host_allowed(const struct http_rules *rules, struct slice text)
{
    bool any = rules->any_host && rules->hosts == NULL;
    struct slice host, port;

    if (text.len == 0)
        return any;
    if (!http_authority_read(text, &host, &port))
        return false;
    if (any || is_address(host) || is_same(host, slice_of_text("localhost")) ||
        is_same(host, slice_of_text(rules->name)))
        return true;
    for (char *const *entry = rules->hosts; entry != NULL && *entry != NULL; entry++) {
        if (is_allowed(*entry, host, port))
            return true;
    }
    return false;
}

/* --- Origin --- */

/* Moves past "SCHEME://". False: another one. */
static bool skip_scheme(struct slice *origin, const char *scheme)
{
    size_t len = strlen(scheme);

    if (origin->len <= len || !is_same(slice_of(origin->data, len), slice_of_text(scheme)))
        return false;
    *origin = slice_of(origin->data + len, origin->len - len);
    return true;
}

/* A proxy in front may speak TLS: both schemes are the listener's own, if host and port are. */
static bool is_own(struct slice origin, struct slice host)
{
    struct slice name, port, own_name, own_port;
    const char *usual = "80";

    if (skip_scheme(&origin, "https://"))
        usual = "443";
    else if (!skip_scheme(&origin, "http://"))
        return false;
    if (!http_authority_read(origin, &name, &port) ||
        !http_authority_read(host, &own_name, &own_port))
        return false;
    if (port.len == 0)
        port = slice_of_text(usual);
    if (own_port.len == 0)
        own_port = slice_of_text(usual);
    return name.len > 0 && is_same(name, own_name) && slice_equal(port, own_port);
}

static bool is_digits(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.len > 0;
}

/* "http://localhost:*" allows any port, and none. */
static bool is_named(const char *entry, struct slice origin)
{
    size_t len = strlen(entry);

    if (strcmp(entry, "*") == 0 || is_same(slice_of(entry, len), origin))
        return true;
    if (len < 2 || strcmp(entry + len - 2, ":*") != 0 || origin.len < len - 2 ||
        !is_same(slice_of(entry, len - 2), slice_of(origin.data, len - 2)))
        return false;
    origin = slice_of(origin.data + len - 2, origin.len - (len - 2));
    return origin.len == 0 ||
           (origin.data[0] == ':' && is_digits(slice_of(origin.data + 1, origin.len - 1)));
}

static bool is_visible(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 0x7F)
            return false;
    }
    return text.len > 0;
}

enum http_origin http_origin_judge(const struct http_rules *rules, struct slice origin,
                                   struct slice host)
{
    if (origin.data == NULL)
        return HTTP_ORIGIN_NONE;
    if (origin.len > ORIGIN_MAX || !is_visible(origin))
        return HTTP_ORIGIN_REFUSED;
    for (char *const *entry = rules->origins; entry != NULL && *entry != NULL; entry++) {
        if (is_named(*entry, origin))
            return HTTP_ORIGIN_NAMED;
    }
    return is_own(origin, host) ? HTTP_ORIGIN_OWN : HTTP_ORIGIN_REFUSED;
}

/* --- what a page is told --- */

static size_t add(char *to, size_t size, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t add(char *to, size_t size, size_t len, const char *format, ...)
{
    va_list args;
    int more;

    va_start(args, format);
    more = vsnprintf(to + len, size - len, format, args);
    va_end(args);
    ASSERT(more >= 0 && (size_t)more < size - len);
    return len + (size_t)more;
}

size_t http_cors_fields(char to[HTTP_CORS_MAX], struct slice origin)
{
    ASSERT(origin.len <= ORIGIN_MAX);
    return add(to, HTTP_CORS_MAX, 0,
               "Access-Control-Allow-Origin: %.*s\r\n"
               "Access-Control-Expose-Headers: Mcp-Session-Id, Mcp-Protocol-Version, "
               "WWW-Authenticate, Retry-After\r\n"
               "Vary: Origin\r\n",
               (int)origin.len, origin.data);
}

/* Names, commas and blanks. */
static bool is_list_of_names(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        int byte = lower(text.data[i]);

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= '0' && byte <= '9') && byte != '-' &&
            byte != '_' && byte != ',' && byte != ' ')
            return false;
    }
    return text.len > 0 && text.len <= ASKED_HEADERS_MAX;
}

size_t http_preflight_fields(char to[HTTP_CORS_MAX], struct slice origin, struct slice headers,
                             bool is_private)
{
    size_t len = http_cors_fields(to, origin);

    if (!is_list_of_names(headers))
        headers = slice_of_text("Content-Type, Accept, Authorization, Mcp-Session-Id, "
                                "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID");
    len = add(to, HTTP_CORS_MAX, len,
              "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
              "Access-Control-Allow-Headers: %.*s\r\n"
              "Access-Control-Max-Age: 7200\r\n",
              (int)headers.len, headers.data);
    if (is_private)
        len = add(to, HTTP_CORS_MAX, len, "Access-Control-Allow-Private-Network: true\r\n");
    return len;
}

/* --- tokens --- */

struct slice http_bearer(struct slice authorization)
{
    static const char scheme[] = "Bearer ";
    size_t len = sizeof scheme - 1;

    if (authorization.len <= len ||
        !is_same(slice_of(authorization.data, len), slice_of_text(scheme)))
        return slice_of(NULL, 0);
    while (len < authorization.len && authorization.data[len] == ' ')
        len++;
    return slice_of(len < authorization.len ? authorization.data + len : NULL,
                    authorization.len - len);
}

/* The bytes of a URL before its path. */
static size_t base_of(const char *url)
{
    const char *host = strstr(url, "://"), *path;

    host = host != NULL ? host + 3 : url;
    path = strchr(host, '/');
    return path != NULL ? (size_t)(path - url) : strlen(url);
}

/* The path of the resource, as it follows that of the document: "/" does not. */
static const char *path_of(const char *url)
{
    const char *path = url + base_of(url);

    return strcmp(path, "/") == 0 ? "" : path;
}

size_t http_challenge(char to[HTTP_CHALLENGE_MAX], const struct http_rules *rules, bool invalid)
{
    size_t len = add(to, HTTP_CHALLENGE_MAX, 0, "Bearer realm=\"stdio_bus\"%s",
                     invalid ? ", error=\"invalid_token\"" : "");

    if (rules->resource == NULL || strlen(rules->resource) > HTTP_CHALLENGE_MAX / 2)
        return len;
    return add(to, HTTP_CHALLENGE_MAX, len, ", resource_metadata=\"%.*s" WELL_KNOWN "%s\"",
               (int)base_of(rules->resource), rules->resource, path_of(rules->resource));
}

/* --- the document --- */

static void add_text(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of_text(text));
}

static void add_list(struct json_output *out, const char *key, char *const *list)
{
    add_text(out, ",");
    json_output_string(out, slice_of_text(key));
    add_text(out, ":[");
    for (size_t i = 0; list[i] != NULL; i++) {
        add_text(out, i > 0 ? "," : "");
        json_output_string(out, slice_of_text(list[i]));
    }
    add_text(out, "]");
}

static size_t room_for(char *const *list)
{
    size_t room = 0;

    for (; list != NULL && *list != NULL; list++)
        room += STRING_ROOM(strlen(*list)) + 1;
    return room;
}

char *http_resource_document(const char *resource, char *const *servers, char *const *scopes,
                             size_t *len)
{
    size_t room = 256 + STRING_ROOM(strlen(resource)) + room_for(servers) + room_for(scopes);
    struct json_output out = {.to = malloc(room), .size = room};

    if (out.to == NULL)
        return NULL;
    add_text(&out, "{\"resource\":");
    json_output_string(&out, slice_of_text(resource));
    add_list(&out, "authorization_servers", servers);
    if (scopes != NULL)
        add_list(&out, "scopes_supported", scopes);
    add_text(&out, ",\"bearer_methods_supported\":[\"header\"]}\n");
    ASSERT(!out.full);
    *len = out.len;
    return out.to;
}

bool http_is_resource_path(const struct http_rules *rules, struct slice path)
{
    const size_t len = sizeof WELL_KNOWN - 1;

    if (rules->resource == NULL || path.len < len || memcmp(path.data, WELL_KNOWN, len) != 0)
        return false;
    path = slice_of(path.data + len, path.len - len);
    return path.len == 0 || slice_is(path, path_of(rules->resource));
}

static struct http_route at(enum http_place place, struct slice pool)
{
    return (struct http_route){.place = place, .pool = pool};
}

/* PREFIX, or PREFIX/POOL. */
static bool is_usual(struct slice path, const char *prefix, struct slice *pool)
{
    size_t len = strlen(prefix);

    *pool = slice_of(NULL, 0);
    if (path.len < len || memcmp(path.data, prefix, len) != 0)
        return false;
    if (path.len == len)
        return true;
    *pool = slice_of(path.data + len + 1, path.len - len - 1);
    return path.data[len] == '/' && pool->len > 0;
}

static struct http_route find_usual(struct slice path)
{
    struct slice pool;

    if (is_usual(path, "/mcp", &pool))
        return at(HTTP_PLACE_MCP, pool);
    if (is_usual(path, "/rpc", &pool))
        return at(HTTP_PLACE_RPC, pool);
    return at(HTTP_PLACE_NOWHERE, slice_of(NULL, 0));
}

struct http_route http_routes_find(const struct http_listen_config *config, struct slice path)
{
    if (config->health && slice_is(path, "/healthz"))
        return at(HTTP_PLACE_HEALTH, slice_of(NULL, 0));
    if (config->health && slice_is(path, "/readyz"))
        return at(HTTP_PLACE_READY, slice_of(NULL, 0));
    if (config->metrics && slice_is(path, "/metrics"))
        return at(HTTP_PLACE_METRICS, slice_of(NULL, 0));
    if (config->is_bare)
        return at(HTTP_PLACE_NOWHERE, slice_of(NULL, 0));
    if (path.len > 1 && path.data[path.len - 1] == '/')
        path.len--;
    if (config->route_count == 0)
        return find_usual(path);
    for (size_t i = 0; i < config->route_count; i++) {
        const struct http_route_config *route = &config->routes[i];

        if (slice_is(path, route->path))
            return at(route->kind == HTTP_ROUTE_RPC ? HTTP_PLACE_RPC : HTTP_PLACE_MCP,
                      slice_of(route->pool, strlen(route->pool)));
    }
    return at(HTTP_PLACE_NOWHERE, slice_of(NULL, 0));
}

size_t http_routes_describe(const struct http_listen_config *config, char *to, size_t size)
{
    size_t len = 0;

    to[0] = '\0';
    if (config->is_bare)
        len = (size_t)snprintf(to, size, "/metrics, /healthz and /readyz");
    else if (config->route_count == 0)
        len = (size_t)snprintf(to, size, "/mcp, /mcp/POOL, /rpc and /rpc/POOL");
    for (size_t i = 0; i < config->route_count && len < size; i++)
        len += (size_t)snprintf(to + len, size - len, "%s%s", i > 0 ? ", " : "",
                                config->routes[i].path);
    return len < size ? len : size - 1;
}
