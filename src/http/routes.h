/* Routes: what is at a path of an HTTP listener. No I/O. */
#ifndef STDIO_BUS_HTTP_ROUTES_H
#define STDIO_BUS_HTTP_ROUTES_H

#include "base/slice.h"
#include "config/http_keys.h"

enum http_place {
    HTTP_PLACE_NOWHERE,  /* 404 */
    HTTP_PLACE_MCP,      /* MCP's Streamable HTTP, and WebSocket for any protocol */
    HTTP_PLACE_RPC,      /* a POST of JSON-RPC, answered as JSON */
    HTTP_PLACE_HEALTH,   /* /healthz */
    HTTP_PLACE_READY,    /* /readyz */
    HTTP_PLACE_METRICS,  /* /metrics */
    HTTP_PLACE_RESOURCE, /* /.well-known/oauth-protected-resource */
};

struct http_route {
    enum http_place place;
    struct slice pool; /* the id that the route names; data NULL: none. It lives as long as the
                        * configuration, or the path */
};

/* Finds what is at the path, which is that of the request target without its query, as it was sent.
 * A slash at the end does not count. With routes in the configuration there are these alone;
 * without: /mcp, /mcp/POOL, /rpc and /rpc/POOL, where the caller looks whether there is such a
 * pool. An escaped character of a pool's id (%20) is not decoded: such pools need a route. */
struct http_route http_routes_find(const struct http_listen_config *config, struct slice path);

/* Writes what there is, for the body of a 404: "/mcp, /mcp/POOL, ...". Returns the length. */
size_t http_routes_describe(const struct http_listen_config *config, char *to, size_t size);

#endif
