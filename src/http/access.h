/* Access to an HTTP listener: which Host and Origin a request may have, what a page of another
 * origin is told (CORS), and the challenge for a token. No I/O: slices in, text out. */
#ifndef STDIO_BUS_HTTP_ACCESS_H
#define STDIO_BUS_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "config/listen.h"

#define HTTP_CORS_MAX 2048      /* bytes of the fields for a page */
#define HTTP_CHALLENGE_MAX 1024 /* bytes of the value of WWW-Authenticate */

/* Borrowed from the configuration. Lists end with NULL; NULL is an empty list. */
struct http_rules {
    char *const *hosts;   /* names that are allowed in Host; "*": any */
    char *const *origins; /* that are allowed beside the listener's own; "*": any */
    const char *name;     /* the host that the listener was given, "": none */
    bool any_host;        /* Host is not looked at where `hosts` is empty: a token is asked for, or
                           * a browser cannot connect (a Unix socket) */
    const char *resource; /* the URL of the protected resource; NULL: none */
};

/* --- the rules --- */

/* Whether the value of Host is allowed; data NULL: the request has none. An IP address and
 * "localhost" (with any port) always are, since no name server makes them another machine's. So
 * is the listener's own host. Other names only if `hosts` has them or any_host is set: that is what
 * stops a page whose name was made to point here (DNS rebinding). */
bool http_host_allowed(const struct http_rules *rules, struct slice host);

enum http_origin {
    HTTP_ORIGIN_NONE,   /* the request has no Origin: no page of another origin sent it */
    HTTP_ORIGIN_OWN,    /* the page came from this listener */
    HTTP_ORIGIN_NAMED,  /* the configuration allows it: the answer has CORS fields */
    HTTP_ORIGIN_REFUSED /* 403 */
};

/* Judges the value of Origin (data NULL: none) beside an allowed Host. */
enum http_origin http_origin_judge(const struct http_rules *rules, struct slice origin,
                                   struct slice host);

/* --- what a page is told: whole fields, each with its CRLF. Return their length. --- */

/* For each answer to a request of a named origin. */
size_t http_cors_fields(char to[HTTP_CORS_MAX], struct slice origin);

/* For the answer (204) to a preflight: OPTIONS with Access-Control-Request-Method. `headers` is the
 * value of Access-Control-Request-Headers, which is allowed as it is if it is a list of names;
 * `is_private`: Access-Control-Request-Private-Network is true. Includes http_cors_fields. */
size_t http_preflight_fields(char to[HTTP_CORS_MAX], struct slice origin, struct slice headers,
                             bool is_private);

/* --- tokens --- */

/* The token in the value of Authorization, "Bearer TOKEN"; data NULL: there is none. */
struct slice http_bearer(struct slice authorization);

/* The value of WWW-Authenticate of a 401; `invalid`: a token was shown, and it is wrong. */
size_t http_challenge(char to[HTTP_CHALLENGE_MAX], const struct http_rules *rules, bool invalid);

/* The document at /.well-known/oauth-protected-resource (RFC 9728), as JSON. `servers` and `scopes`
 * are lists; scopes may be NULL. To be freed; NULL if out of memory. */
char *http_resource_document(const char *resource, char *const *servers, char *const *scopes,
                             size_t *len);

/* Whether the path is that of the document: with nothing after it, or the path of the resource. */
bool http_is_resource_path(const struct http_rules *rules, struct slice path);

/* --- Routes: what is at a path of an HTTP listener. No I/O. --- */

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
