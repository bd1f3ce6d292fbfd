#include "build_config.h"

#include "http/routes.h"

#include <stdio.h>

static bool is_text(struct slice path, const char *text)
{
    return slice_equal(path, slice_of(text, strlen(text)));
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
    if (config->health && is_text(path, "/healthz"))
        return at(HTTP_PLACE_HEALTH, slice_of(NULL, 0));
    if (config->health && is_text(path, "/readyz"))
        return at(HTTP_PLACE_READY, slice_of(NULL, 0));
    if (config->metrics && is_text(path, "/metrics"))
        return at(HTTP_PLACE_METRICS, slice_of(NULL, 0));
    if (config->is_bare)
        return at(HTTP_PLACE_NOWHERE, slice_of(NULL, 0));
    if (path.len > 1 && path.data[path.len - 1] == '/')
        path.len--;
    if (config->route_count == 0)
        return find_usual(path);
    for (size_t i = 0; i < config->route_count; i++) {
        const struct http_route_config *route = &config->routes[i];

        if (is_text(path, route->path))
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
