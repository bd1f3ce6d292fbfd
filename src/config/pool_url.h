/* A pool with "url": its workers are this program as the client of a server, --connect URL. */
#ifndef STDIO_BUS_CONFIG_POOL_URL_H
#define STDIO_BUS_CONFIG_POOL_URL_H

#include <stdbool.h>

#include "config/diagnostics.h"

/* Check "url", "headers", and the keys of a pool that exclude or need each other. */
void pool_url_check(struct diagnostics *diagnostics, const struct json_value *url);
void pool_url_check_headers(struct diagnostics *diagnostics, const struct json_value *headers);
void pool_url_check_keys(struct diagnostics *diagnostics, const struct json_value *pool);

/* The arguments after argv[0], of a valid pool with "url", each to be freed: at most `size` are
 * written to `argv`, none after one for which there was no memory. Returns how many there are. */
size_t pool_url_arguments(const struct json_value *pool, char **argv, size_t size);

/* The file that is executed: this program. */
const char *pool_url_program(void);

#endif
