/* Routes: what is at a path of an HTTP listener. */
#include "build_config.h"

#include "http/access.h"
#include "suite.h"

static struct http_route_config routes[] = {
    {(char *)"/mcp", (char *)"tools", HTTP_ROUTE_MCP},
    {(char *)"/a/b", (char *)"agents", HTTP_ROUTE_MCP},
    {(char *)"/call", (char *)"tools", HTTP_ROUTE_RPC},
    {(char *)"/", (char *)"root", HTTP_ROUTE_MCP},
};

static const struct {
    const char *path;
    enum http_place usual, routed; /* without routes, and with them */
    const char *usual_pool, *routed_pool;
} rows[] = {
    {"/mcp", HTTP_PLACE_MCP, HTTP_PLACE_MCP, NULL, "tools"},
    {"/mcp/", HTTP_PLACE_MCP, HTTP_PLACE_MCP, NULL, "tools"},
    {"/mcp//", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/mcp/p", HTTP_PLACE_MCP, HTTP_PLACE_NOWHERE, "p", NULL},
    {"/mcp/p/", HTTP_PLACE_MCP, HTTP_PLACE_NOWHERE, "p", NULL},
    {"/mcp/p/q", HTTP_PLACE_MCP, HTTP_PLACE_NOWHERE, "p/q", NULL},
    {"/MCP", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/mcpx", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/mc", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/rpc", HTTP_PLACE_RPC, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/rpc/p", HTTP_PLACE_RPC, HTTP_PLACE_NOWHERE, "p", NULL},
    {"/call", HTTP_PLACE_NOWHERE, HTTP_PLACE_RPC, NULL, "tools"},
    {"/a/b", HTTP_PLACE_NOWHERE, HTTP_PLACE_MCP, NULL, "agents"},
    {"/a", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/", HTTP_PLACE_NOWHERE, HTTP_PLACE_MCP, NULL, "root"},
    {"*", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
    {"/sse", HTTP_PLACE_NOWHERE, HTTP_PLACE_NOWHERE, NULL, NULL},
};

static void expect_route(const struct http_listen_config *config, const char *path,
                         enum http_place place, const char *pool)
{
    struct http_route route = http_routes_find(config, slice_of(path, strlen(path)));

    ck_assert_int_eq(route.place, place);
    ck_assert_int_eq(route.pool.data != NULL, pool != NULL);
    if (pool != NULL)
        ck_assert(slice_equal(route.pool, slice_of(pool, strlen(pool))));
}

TEST_ROWS(routes_of_paths, COUNT(rows))
{
    struct http_listen_config config = {.route_count = 0};

    expect_route(&config, rows[row].path, rows[row].usual, rows[row].usual_pool);
    config.routes = routes;
    config.route_count = COUNT(routes);
    expect_route(&config, rows[row].path, rows[row].routed, rows[row].routed_pool);
}

TEST(health_by_choice)
{
    struct http_listen_config config = {.route_count = 0};

    expect_route(&config, "/healthz", HTTP_PLACE_NOWHERE, NULL);
    expect_route(&config, "/readyz", HTTP_PLACE_NOWHERE, NULL);
    config.health = true;
    expect_route(&config, "/healthz", HTTP_PLACE_HEALTH, NULL);
    expect_route(&config, "/readyz", HTTP_PLACE_READY, NULL);
}

/* A list that is too long is cut. */
TEST(description)
{
    struct http_listen_config config = {.route_count = 0};
    char to[64];

    ck_assert_uint_eq(http_routes_describe(&config, to, sizeof to), strlen(to));
    ck_assert_str_eq(to, "/mcp, /mcp/POOL, /rpc and /rpc/POOL");
    config.routes = routes;
    config.route_count = COUNT(routes);
    ck_assert_uint_eq(http_routes_describe(&config, to, sizeof to), strlen(to));
    ck_assert_str_eq(to, "/mcp, /a/b, /call, /");
    ck_assert_uint_eq(http_routes_describe(&config, to, 8), 7);
    ck_assert_str_eq(to, "/mcp, /");
}
