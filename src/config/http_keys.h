/* The keys of an HTTP listener: "origins", "hosts", "routes", "oauth" and "health". */
#ifndef STDIO_BUS_CONFIG_HTTP_KEYS_H
#define STDIO_BUS_CONFIG_HTTP_KEYS_H

#include "config/diagnostics.h"
#include "config/listen.h"

void http_keys_check_origins(struct diagnostics *diagnostics, const struct json_value *origins);
void http_keys_check_hosts(struct diagnostics *diagnostics, const struct json_value *hosts);
void http_keys_check_routes(struct diagnostics *diagnostics, const struct json_value *routes);
void http_keys_check_oauth(struct diagnostics *diagnostics, const struct json_value *oauth);

/* Checks that the string is the id of a pool of the configuration. */
void http_keys_check_pool(struct diagnostics *diagnostics, const struct json_value *pool);

/* Reads the keys of a valid object "listen". STDIO_BUS_ERR when memory is out; http_keys_free in
 * any case. */
int http_keys_read(struct http_listen_config *config, const struct json_value *listen);

/* A zeroed one is fine. */
void http_keys_free(struct http_listen_config *config);

#endif
