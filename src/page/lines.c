#include "build_config.h"

#include "page/lines.h"

#include "config/pool_mode.h"
#include "page/html.h"
#include "process/pool.h"

/* A line is pasted into a shell, or into JSON: nothing in it may have a meaning there. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static bool is_plain_path(struct slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (!is_plain(path.data[i]) && path.data[i] != '/')
            return false;
    }
    return path.len > 0;
}

/* What is not plain becomes an underscore. */
static void add_name(struct json_text *to, struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        json_text_literal(to, is_plain(id.data[i]) ? (char[]){id.data[i], '\0'} : "_");
}

/* The path of a route to the pool; "": there is none. */
static struct slice route_to(const struct http_listen_config *http, struct slice id)
{
    for (size_t i = 0; i < http->route_count; i++) {
        const struct http_route_config *route = &http->routes[i];

        if (route->kind == HTTP_ROUTE_MCP && slice_equal(slice_of_text(route->pool), id))
            return slice_of_text(route->path);
    }
    return slice_of("", 0);
}

/* Adds the pool's URL. False: it has none that can be pasted. */
static bool add_url(struct json_text *to, const struct bus_listener *listener, struct slice host,
                    const struct pool *pool)
{
    const struct http_listen_config *http = &listener->config->http;
    struct slice id = pool->group.id, path = id;

    if (http->route_count > 0)
        path = route_to(http, id);
    if (listener->config->address.is_unix || !is_plain_path(path) ||
        (listener->pool != NULL && !slice_equal(listener->pool->id, id)))
        return false;
    json_text_literal(to, "http://");
    html_text(to, host);
    json_text_literal(to, http->route_count == 0 ? "/mcp/" : "");
    json_text_add(to, path);
    return !to->failed;
}

static void add_pattern(struct json_text *to, struct slice pattern, struct slice url,
                        struct slice id, bool has_token)
{
    bool is_left_out = false;

    for (size_t i = 0; i < pattern.len; i++) {
        char sign = '\0';

        if (i + 1 < pattern.len && pattern.data[i] == '@')
            sign = pattern.data[i + 1];
        if (sign == '[' || sign == ']')
            is_left_out = sign == '[' && !has_token;
        else if (is_left_out)
            continue;
        else if (sign == 'u')
            json_text_add(to, url);
        else if (sign == 'n')
            add_name(to, id);
        else
            json_text_add(to, slice_of(pattern.data + i, 1));
        i += !is_left_out && sign != '\0' && strchr("[]un", sign) != NULL;
    }
}

/* ACP and LSP have clients of their own. */
static bool is_for_mcp(const struct pool *pool)
{
    enum pool_protocol protocol = pool->group.mode.protocol;

    return pool->fate == POOL_SERVES && (protocol == PROTOCOL_UNKNOWN || protocol == PROTOCOL_MCP);
}

void lines_add(struct json_text *to, const struct bus_listener *listener, struct slice host,
               struct slice pattern)
{
    struct list_node *node, *following;

    list_each(&listener->bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);
        struct json_text url = {.data = NULL};

        if (is_for_mcp(pool) && add_url(&url, listener, host, pool))
            add_pattern(to, pattern, json_text_slice(&url), pool->group.id,
                        listener_asks_token(listener));
        to->failed |= url.failed;
        json_text_free(&url);
    }
}
