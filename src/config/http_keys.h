/* The keys of an HTTP listener: "origins", "hosts", "routes", "oauth", "health" and "metrics". */
#ifndef STDIO_BUS_CONFIG_HTTP_KEYS_H
#define STDIO_BUS_CONFIG_HTTP_KEYS_H

#include "config/diagnostics.h"

/* What is spoken on a path of an HTTP listener. */
enum http_route_kind {
    HTTP_ROUTE_MCP, /* MCP's Streamable HTTP, and WebSocket */
    HTTP_ROUTE_RPC, /* a POST of JSON-RPC, answered as JSON */
    HTTP_ROUTE_NONE /* not found */
};

struct http_route_config {
    char *path; /* begins with '/' and does not end with one, but for "/" itself */
    char *pool;
    enum http_route_kind kind;
};

/* The metadata of a protected resource (RFC 9728). */
struct http_oauth_config {
    char *resource; /* its URL; NULL: nothing is published */
    char **servers; /* of authorization: URLs; ends with NULL */
    char **scopes;  /* ends with NULL, or NULL */
};

struct http_listen_config {
    char **origins; /* that may call from a page: "https://a.example", "http://localhost:*", "*" or
                     * "null"; ends with NULL, or NULL: none but the listener's own */
    char **hosts;   /* names in Host, with a port or without; "*": any; the same */
    struct http_route_config *routes; /* instead of the usual ones */
    size_t route_count;               /* 0: the usual ones */
    struct http_oauth_config oauth;
    bool health;  /* /healthz and /readyz are there */
    bool metrics; /* /metrics is there */
    bool is_bare; /* nothing else is */
};

void http_keys_check_origins(struct diagnostics *diagnostics, const struct json_value *origins);
void http_keys_check_hosts(struct diagnostics *diagnostics, const struct json_value *hosts);
void http_keys_check_routes(struct diagnostics *diagnostics, const struct json_value *routes);
void http_keys_check_oauth(struct diagnostics *diagnostics, const struct json_value *oauth);

/* Checks that the string is the id of a pool of the configuration. */
void http_keys_check_pool(struct diagnostics *diagnostics, const struct json_value *pool);

/* Reads the keys of a valid object "listen". STDIO_BUS_ERR if out of memory; http_keys_free in any
 * case. */
int http_keys_read(struct http_listen_config *config, const struct json_value *listen);

/* A zeroed one is fine. */
void http_keys_free(struct http_listen_config *config);

#endif
