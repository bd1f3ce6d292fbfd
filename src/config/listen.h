/* The key "listen": an object with the keys of the listeners that the command line names, or an
 * array of listeners, each with its address. Those of HTTP have keys of their own. */
#ifndef STDIO_BUS_CONFIG_LISTEN_H
#define STDIO_BUS_CONFIG_LISTEN_H

#include "config/access.h"
#include "config/diagnostics.h"
#include "config/keys.h"
#include "config/listen_address.h"
#include "framing/framing.h"

#define LISTENS_MAX 64

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
    bool no_page; /* there is no page for browsers at / */
    bool is_bare; /* nothing else is */
};

struct listen_config {
    struct listen_address address;
    char *pool;                    /* of all its clients; NULL: each names its own */
    const struct framing *framing; /* NULL: NDJSON */
    struct access access;          /* to a Unix socket */
    char *token_file;              /* NULL: no token is asked for */
    bool open;                     /* other machines are served without one */
    struct http_listen_config http;
};

extern const struct key_table listen_keys;

/* Checks the key, an object or an array of objects. */
void listen_check(struct diagnostics *diagnostics, const struct json_value *listen);

/* The key "metrics": the address of an HTTP listener for /metrics, /healthz and /readyz. Checks
 * it; makes the listener of a valid one, which owns nothing. */
void listen_check_metrics(struct diagnostics *diagnostics, const struct json_value *address);
void listen_of_metrics(struct listen_config *config, const struct json_value *address);

/* Checks the addresses of "listen", "metrics" and "control" of a document with valid values: no two
 * are one. Hosts are compared by name; what the service manager passes on is not compared. */
void listen_check_addresses(struct diagnostics *diagnostics, const struct json_value *root);

/* Whether a valid object has an address of its own: it is a listener. */
bool listen_has_address(const struct json_value *object);

/* Reads a valid object, or none (NULL). STDIO_BUS_ERR if out of memory, or if a name is not found
 * that was found before; errno may have the reason. listen_free in any case. */
int listen_read(struct listen_config *config, const struct json_value *object);

/* Whether one of them serves metrics. */
bool listen_any_metrics(const struct listen_config *listens, size_t count);

/* A zeroed one is fine. */
void listen_free(struct listen_config *config);

#endif
